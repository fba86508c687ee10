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
    /// `names`: all names that an expression may use. Throws UserError "<origin>/<number>: …" for an
    /// expression that cannot be parsed, with the nearest name if a name is unknown.
    Expressions(const std::vector<std::string>& expressions, const std::vector<std::string>& names,
                const std::string& origin);
    ~Expressions();

    /// Whether some expression uses a name.
    bool use(const std::string& name) const;
    /// Whether all expressions are true. `values` has a number, text or boolean for each name in use. Throws
    /// UserError if an expression has no truth value: text compared with a number, or no comparison at all.
    bool all_hold(const Json& values);
    /// The number value of one expression; a truth value counts as 1 or 0. Throws UserError for text or a
    /// number that is not finite.
    double number(std::size_t expression, const Json& values);

private:
    struct Parsers;
    std::unique_ptr<Parsers> parsers_;
};

}  // namespace overlap
