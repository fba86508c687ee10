#include "sim/transformer/formula.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>

#include "sim/core/errors.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

bool is_true(const Json& value) {
    if (value.is_number()) return value.get<double>() != 0;
    if (value.is_boolean()) return value.get<bool>();
    return value.is_structured() ? !value.empty() : !value.is_null();
}

double number_of(const Json& value) {
    if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
    return value.is_number() ? value.get<double>() : std::nan("");
}

/// Whole numbers below 2^53 stay exact.
Json calculated(char sign, const Json& a, const Json& b) {
    const double x = number_of(a), y = number_of(b);
    const double result = sign == '+'   ? x + y
                          : sign == '-' ? x - y
                          : sign == '*' ? x * y
                          : sign == '/' ? x / y
                                        : std::fmod(x, y);
    if (!std::isfinite(result)) return nullptr;
    constexpr double exact = 9e15;
    if (std::abs(result) < exact && result == std::floor(result)) return static_cast<std::int64_t>(result);
    return result;
}

/// Reads and evaluates a formula from its start to its end. Each member function reads what binds at least as
/// strongly as its name says.
class Formula {
public:
    Formula(std::string_view text, const NameValue& value_of) : text_(text), value_of_(value_of) {
        advance();
    }

    Json value() {
        Json result = choice();
        if (!token_.empty()) fail();
        return result;
    }

private:
    static bool is_sign(char character) {
        return std::string_view("?:|()[]=!<>+-*/%").find(character) != std::string_view::npos;
    }

    [[noreturn]] void fail() const {
        throw UserError("formula " + in_quotes(std::string(text_), 200) + " has a mistake before " +
                        in_quotes(std::string(text_.substr(place_)), 200));
    }

    void advance() {
        while (place_ < text_.size() && text_[place_] == ' ') ++place_;
        std::size_t end = place_;
        if (end == text_.size()) return static_cast<void>(token_ = {});
        if (text_[end] == '\'') {
            end = text_.find('\'', end + 1);
            if (end == std::string_view::npos) fail();
            ++end;
        } else if (is_sign(text_[end])) {
            const bool longer = end + 1 < text_.size() && text_[end + 1] == '=' &&
                                std::string_view("=!<>").find(text_[end]) != std::string_view::npos;
            end += longer ? 2 : 1;
        } else {
            while (end < text_.size() && text_[end] != ' ' && !is_sign(text_[end])) ++end;
        }
        token_ = text_.substr(place_, end - place_);
        place_ = end;
    }
    bool take(std::string_view token) {
        if (token_ != token) return false;
        advance();
        return true;
    }
    void need(std::string_view token) {
        if (!take(token)) fail();
    }
    /// The one of `tokens` that stands here, which is taken; empty if none does.
    std::string_view taken(std::initializer_list<std::string_view> tokens) {
        for (const std::string_view token : tokens)
            if (take(token)) return token;
        return {};
    }
    /// Reads `part`, and leaves out its value where it is not `needed`.
    Json only_if(bool needed, Json (Formula::*part)()) {
        const bool before = live_;
        live_ = live_ && needed;
        Json value = (this->*part)();
        live_ = before;
        return value;
    }

    Json choice() {
        Json condition = either();
        if (!take("?")) return condition;
        const bool chosen = is_true(condition);
        Json first = only_if(chosen, &Formula::choice);
        need(":");
        Json second = only_if(!chosen, &Formula::choice);
        return chosen ? first : second;
    }
    Json either() {
        Json value = both();
        while (take("or")) {
            const bool holds = is_true(value);
            value = is_true(only_if(!holds, &Formula::both)) || holds;
        }
        return value;
    }
    Json both() {
        Json value = compared();
        while (take("and")) {
            const bool holds = is_true(value);
            value = is_true(only_if(holds, &Formula::compared)) && holds;
        }
        return value;
    }
    Json compared() {
        Json a = present();
        const std::string_view sign = taken({"==", "!=", "<=", ">=", "<", ">", "in"});
        if (sign.empty()) return a;
        const Json b = present();
        if (sign == "in") return b.is_array() && std::ranges::find(b, a) != b.end();
        if (sign == "==") return a == b;
        if (sign == "!=") return a != b;
        const double x = number_of(a), y = number_of(b);
        return sign == "<" ? x < y : sign == ">" ? x > y : sign == "<=" ? x <= y : x >= y;
    }
    Json present() {
        Json value = sum();
        while (take("|")) {
            Json other = only_if(value.is_null(), &Formula::sum);
            if (value.is_null()) value = std::move(other);
        }
        return value;
    }
    Json sum() {
        Json value = product();
        for (std::string_view sign; !(sign = taken({"+", "-"})).empty();)
            value = calculated(sign[0], value, product());
        return value;
    }
    Json product() {
        Json value = part();
        for (std::string_view sign; !(sign = taken({"*", "/", "%"})).empty();)
            value = calculated(sign[0], value, part());
        return value;
    }
    Json part() {
        if (take("not")) return !is_true(part());
        if (take("size")) {
            const Json list = part();
            return list.is_array() ? Json(list.size()) : Json();
        }
        Json value = single();
        while (token_ == "[" || token_.starts_with('.')) {
            if (token_ != "[") {
                value = member(value, token_);
                advance();
                continue;
            }
            advance();
            const Json place = only_if(!value.is_null(), &Formula::choice);
            need("]");
            const bool has = value.is_array() && place.is_number_integer() &&
                             place.get<std::int64_t>() >= 0 && place.get<std::size_t>() < value.size();
            value = has ? Json(value[place.get<std::size_t>()]) : Json();
        }
        return value;
    }
    /// What ".attention.no_op" names of an object; null where it has none.
    static Json member(Json value, std::string_view names) {
        for (const std::string& name : split(names.substr(1), '.'))
            value = value.is_object() && value.contains(name) ? Json(value[name]) : Json();
        return value;
    }
    Json single() {
        if (take("(")) {
            Json value = choice();
            need(")");
            return value;
        }
        if (token_.empty() || is_sign(token_.front())) fail();
        const std::string_view token = token_;
        advance();
        if (token.front() == '\'') return std::string(token.substr(1, token.size() - 2));
        if (std::isdigit(static_cast<unsigned char>(token.front())) != 0) return Json::parse(token);
        return live_ ? value_of_(std::string(token)) : Json();
    }

    std::string_view text_;
    const NameValue& value_of_;
    std::size_t place_ = 0;
    std::string_view token_;  ///< at place_; empty at the end
    bool live_ = true;        ///< whether the value is needed
};

}  // namespace

Json formula_value(std::string_view formula, const NameValue& value_of) {
    return Formula(formula, value_of).value();
}

}  // namespace overlap
