#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/core/json.hpp"

namespace overlap {

/// What a name of a formula stands for; null where it is left out.
using NameValue = std::function<Json(const std::string& name)>;

/// A formula over named values: of a model's family ("head_dim | hidden / heads"), of the points of a sweep
/// ("gemm.m % (gpus * chunks) == 0") or of results ("serial.makespan_us / ring.makespan_us").
/// - + - * / % ^, == != < <= > >=, and (&&), or (||), not (!), condition ? a : b, 'text' or "text", true, false
/// - abs, cbrt, ceil, exp, floor, ln, log, log10, log2, round, sqrt, trunc, min and max of numbers; size(list)
/// - a | b: the first of them that is not left out. Anything else that is made of what is left out is left out, too.
/// - x in list; list[place], left out beyond its end; list[place].member
/// What is left out is false. What is not needed is not looked up.
class Formula {
public:
    /// Any name may stand in it. Throws UserError for a formula that has a mistake.
    explicit Formula(const std::string& text);
    /// Only `names` may stand in it, and text is no number. Errors begin with `place`.
    Formula(const std::string& text, const std::vector<std::string>& names, std::string place);

    bool uses(const std::string& name) const { return used_.contains(name); }
    Json value(const NameValue& value_of) const { return root_(value_of); }
    /// Whether it is true. `values` has each name that it uses. Throws UserError if it is no comparison.
    bool holds(const Json& values) const;
    /// Its number; a truth value counts as 1 or 0. Throws UserError for text or a number that is not finite.
    double number(const Json& values) const;

private:
    void read(const std::vector<std::string>* names);
    Json value_over(const Json& values) const;
    [[noreturn]] void fail(const std::string& mistake) const;

    std::string text_, place_;
    std::function<Json(const NameValue&)> root_;
    std::set<std::string> used_;
};
using Formulas = std::vector<Formula>;

/// A list of formulas over `names`, at `place` of a file.
Formulas formulas_at(const std::string& place, const std::vector<std::string>& texts,
                     const std::vector<std::string>& names);

}  // namespace overlap
