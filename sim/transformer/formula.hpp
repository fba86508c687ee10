#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/core/json.hpp"

namespace overlap {

/// What a name of a formula stands for; null where it is left out.
using NameValue = std::function<Json(const std::string& name)>;

/// The value of a formula of configs/families.json, for instance "head_dim | hidden / heads". Unlike an expression of a
/// sweep it may meet keys that are left out and lists of text, which muparserx has no values for.
/// - a | b: the first of them that is not left out. Anything else that is made of what is left out is left out, too.
/// - x in list; list[place], left out beyond its end; list[place].member; size(list)
/// - condition ? a : b, or, and, not, == != < <= > >=, + - * / %, 'text'. What is left out is false.
/// What is not needed is not looked up. Throws UserError for a formula that has a mistake.
Json formula_value(std::string_view formula, const NameValue& value_of);

}  // namespace overlap
