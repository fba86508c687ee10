#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace overlap {

/// Characters of names and numbers in expressions.
inline const std::string name_letters = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.";

/// What is wrong with an expression over `names`; empty where nothing was found. Finds the mistakes that
/// muparserx 4.0 accepts ("a and and b") or crashes on ("a or or !b", "a !< 1", "a 45 * b"); all others are
/// muparserx's to find.
std::string syntax_error(std::string_view expression, const std::vector<std::string>& names);

/// muparserx takes "order" for "or" and a name "der", so names that begin with "and" or "or" begin with "_" for it.
std::string spelled_for_parser(const std::string& name);
/// An expression without a syntax_error, with its `names` spelled so.
std::string spelled_for_parser(std::string_view expression, const std::vector<std::string>& names);

}  // namespace overlap
