#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// Expressions over named values that have to hold, for instance "gemm.m % (gpus * chunks) == 0" or
/// "agent == \"cu\" || chunks > 1". Operators: + - * / % ^, == != < <= > >=, && (and), || (or), !, ?:, and
/// muparserx's functions (min, max, abs, sqrt, log2, …). One object serves one thread.
class Constraints {
public:
    /// `names` are all that an expression may use. Throws UserError "<origin>/<number>: …" for one that
    /// cannot be parsed, with the nearest name where a name is unknown.
    Constraints(const std::vector<std::string>& expressions, const std::vector<std::string>& names,
                const std::string& origin);
    ~Constraints();

    /// `values` has a number, text or boolean for each name. Throws UserError where an expression has no
    /// truth value: text compared with a number, or no comparison at all.
    bool hold(const Json& values);

private:
    struct Parsers;
    std::unique_ptr<Parsers> parsers_;
};

}  // namespace overlap
