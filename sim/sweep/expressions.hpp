#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// Expressions over named values, for instance "gemm.m % (gpus * chunks) == 0", "agent == \"cu\" || chunks >
/// 1" or "serial.makespan_us / ring.makespan_us". Operators: + - * / % ^, == != < <= > >=, && (and), || (or),
/// !, ?:, and muparserx's functions (min, max, abs, sqrt, log2, …). One object serves one thread.
class Expressions {
public:
    /// `names` are all that an expression may use. Throws UserError "<origin>/<number>: …" for one that
    /// cannot be parsed, with the nearest name where a name is unknown.
    Expressions(const std::vector<std::string>& expressions, const std::vector<std::string>& names,
                const std::string& origin);
    ~Expressions();

    /// Whether all of them are true. `values` has a number, text or boolean for each name. Throws UserError
    /// where an expression has no truth value: text compared with a number, or no comparison at all.
    bool all_hold(const Json& values);
    /// The number that one of them gives; a truth value counts as 1 or 0. Throws UserError where it gives
    /// text, or nothing finite.
    double number(std::size_t expression, const Json& values);

private:
    struct Parsers;
    std::unique_ptr<Parsers> parsers_;
};

}  // namespace overlap
