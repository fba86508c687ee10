#include "sim/core/formula.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <span>

#include "sim/core/errors.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

using Node = std::function<Json(const NameValue&)>;
using Tokens = std::span<const std::string_view>;

constexpr std::string_view name_letters = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.";
constexpr std::array<std::string_view, 2> any_of{"or", "||"}, all_of{"and", "&&"}, equalities{"==", "!="},
    sums{"+", "-"}, negations{"not", "!"};
constexpr std::array<std::string_view, 5> orders{"<=", ">=", "<", ">", "in"};
constexpr std::array<std::string_view, 1> fallbacks{"|"}, powers{"^"};
constexpr std::array<std::string_view, 3> products{"*", "/", "%"};
/// Operators between two values; those of a row bind stronger than those of the rows before.
constexpr std::array<Tokens, 7> operators{any_of, all_of, equalities, orders, fallbacks, sums, products};

struct NumberFunction {
    std::string_view name;
    double (*of)(double);
};
constexpr std::array<NumberFunction, 12> number_functions{{{"abs", std::fabs},
                                                           {"cbrt", std::cbrt},
                                                           {"ceil", std::ceil},
                                                           {"exp", std::exp},
                                                           {"floor", std::floor},
                                                           {"ln", std::log},
                                                           {"log", std::log},
                                                           {"log10", std::log10},
                                                           {"log2", std::log2},
                                                           {"round", std::round},
                                                           {"sqrt", std::sqrt},
                                                           {"trunc", std::trunc}}};

bool is_true(const Json& value) {
    if (value.is_number()) return value.get<double>() != 0;
    if (value.is_boolean()) return value.get<bool>();
    return value.is_structured() ? !value.empty() : !value.is_null();
}

/// `strict`: text is a mistake, not left out.
double number_of(const Json& value, const std::string& sign, bool strict) {
    if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
    if (value.is_number()) return value.get<double>();
    if (strict && !value.is_null())
        throw UserError(sign + " needs a number on both sides, not " + shown(value));
    return std::nan("");
}

/// Whole numbers below 2^53 stay exact; what is not finite is left out.
Json written_number(double result) {
    if (!std::isfinite(result)) return nullptr;
    constexpr double exact = 9e15;
    if (std::abs(result) < exact && result == std::floor(result)) return static_cast<std::int64_t>(result);
    return result;
}

bool in_order(const std::string& sign, const auto& a, const auto& b) {
    return sign == "<" ? a < b : sign == ">" ? a > b : sign == "<=" ? a <= b : a >= b;
}

Json calculated(const std::string& sign, const Json& a, const Json& b, bool strict) {
    const bool texts = a.is_string() && b.is_string();
    if (sign == "in") return b.is_array() && contains(b, a);
    if (contains(equalities, sign)) return (a == b) == (sign == "==");
    if (texts && contains(orders, sign))
        return in_order(sign, a.get_ref<const std::string&>(), b.get_ref<const std::string&>());
    const double x = number_of(a, sign, strict), y = number_of(b, sign, strict);
    if (contains(orders, sign)) return in_order(sign, x, y);
    return written_number(sign == "+"   ? x + y
                          : sign == "-" ? x - y
                          : sign == "*" ? x * y
                          : sign == "/" ? x / y
                          : sign == "%" ? std::fmod(x, y)
                                        : std::pow(x, y));
}

/// Takes the value of the right side only where it is needed.
Node node_of(const std::string& sign, const Node& a, const Node& b, bool strict) {
    if (sign == "|")
        return [=](const NameValue& of) {
            Json value = a(of);
            return value.is_null() ? b(of) : value;
        };
    const bool any = contains(any_of, sign);
    if (any || contains(all_of, sign))
        return [=](const NameValue& of) -> Json { return is_true(a(of)) == any ? any : is_true(b(of)); };
    return [=](const NameValue& of) {
        const Json x = a(of);
        return calculated(sign, x, b(of), strict);
    };
}

Json element(const Json& list, const Json& place) {
    const bool has = list.is_array() && place.is_number_integer() && place.get<std::int64_t>() >= 0 &&
                     place.get<std::size_t>() < list.size();
    return has ? list[place.get<std::size_t>()] : Json();
}

/// What ".attention.no_op" names of an object; null where it has none.
Json member(Json value, std::string_view names) {
    for (const std::string& name : split(names.substr(1), '.'))
        value = value.is_object() && value.contains(name) ? Json(value[name]) : Json();
    return value;
}

std::optional<Json> number_in(std::string_view token) {
    if (const auto whole = parsed<std::int64_t>(token)) return *whole;
    if (const auto number = parsed<double>(token)) return *number;
    std::int64_t whole = 0;
    const char* end = token.data() + token.size();
    if (token.starts_with("0x") && std::from_chars(token.data() + 2, end, whole, 16).ptr == end) return whole;
    return std::nullopt;
}

/// Reads a formula from its start to its end. `names`: that may stand in it; null: any. Mistakes are UserErrors.
class FormulaReader {
public:
    FormulaReader(std::string_view text, const std::vector<std::string>* names) : rest_(text), names_(names) {
        if (text.size() > longest)
            throw UserError("has " + std::to_string(text.size()) + " characters, the most are " +
                            std::to_string(longest));
        advance();
    }

    Node read() {
        Node root = choice();
        if (!token_.empty()) fail_at_token();
        return root;
    }
    const std::set<std::string>& used() const { return used_; }

private:
    static constexpr std::size_t longest = 10'000;
    static constexpr int most_levels = 100;

    static std::size_t token_length(std::string_view text) {
        if (text.empty()) return 0;
        if (is_quote(text.front())) {
            const std::size_t end = text.find(text.front(), 1);
            if (end == std::string_view::npos) throw UserError("has a text without an end");
            return end + 1;
        }
        std::size_t length = std::min(text.find_first_not_of(name_letters), text.size());
        const bool exponent = is_digit(text.front()) && length < text.size() && !text.starts_with("0x") &&
                              std::tolower(text[length - 1]) == 'e' &&
                              contains(std::string_view("+-"), text[length]);
        if (exponent) length = std::min(text.find_first_not_of(name_letters, length + 1), text.size());
        if (length > 0) return length;
        constexpr std::array<std::string_view, 6> twofold{"==", "!=", "<=", ">=", "&&", "||"};
        return contains(twofold, text.substr(0, 2)) ? 2 : 1;
    }
    static bool is_quote(char letter) { return letter == '\'' || letter == '"'; }
    static bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }
    static bool is_operator(std::string_view token) {
        return contains(negations, token) || token == "^" ||
               std::ranges::any_of(operators, [&](Tokens row) { return contains(row, token); });
    }
    /// A number, a text or a name.
    static bool is_single(std::string_view token) {
        if (token.empty() || is_operator(token)) return false;
        return contains(name_letters, token.front()) || is_quote(token.front());
    }

    void advance() {
        before_ = token_;
        rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
        token_ = rest_.substr(0, token_length(rest_));
        rest_.remove_prefix(token_.size());
    }
    bool take(std::string_view token) {
        if (token_ != token) return false;
        advance();
        return true;
    }
    void need(std::string_view token) {
        if (!take(token)) fail_at_token();
    }
    /// The one of `tokens` that stands here, which is taken; empty if none does.
    std::string_view taken(Tokens tokens) {
        const std::string_view token = contains(tokens, token_) ? token_ : std::string_view();
        if (!token.empty()) advance();
        return token;
    }

    /// `token_` can't stand behind a value.
    [[noreturn]] void fail_at_token() const {
        if (is_single(token_)) {
            require_known(token_);
            throw UserError("there is no operator before " + in_quotes(token_));
        }
        if (token_ == "=") throw UserError("= is no operator, expected a comparison (==)");
        if (contains(negations, token_)) throw UserError(std::string(token_) + " comes after a value");
        throw UserError("has a mistake before " + in_quotes(std::string(token_).append(rest_), 200));
    }
    /// Throws UserError for a word that is neither a number nor a name.
    void require_known(std::string_view token) const {
        if (is_quote(token.front()) || number_in(token)) return;
        if (is_digit(token.front()) || (names_ != nullptr && !contains(*names_, token)))
            throw UserError("there is no " + in_quotes(token) +
                            (names_ == nullptr ? "" : suggestion(token, *names_)));
    }

    Node choice() {
        if (++levels_ > most_levels)
            throw UserError("is nested more than " + std::to_string(most_levels) + " levels deep");
        Node condition = binary(0);
        if (take("?")) {
            Node first = choice();
            need(":");
            Node second = choice();
            condition = [condition, first, second](const NameValue& of) {
                return is_true(condition(of)) ? first(of) : second(of);
            };
        }
        --levels_;
        return condition;
    }
    Node binary(std::size_t row) {
        if (row == operators.size()) return unary();
        Node value = binary(row + 1);
        for (std::string_view sign; !(sign = taken(operators[row])).empty();)
            value = node_of(std::string(sign), value, binary(row + 1), names_ != nullptr);
        return value;
    }
    Node unary() {
        if (!taken(negations).empty())
            return [value = unary()](const NameValue& of) -> Json { return !is_true(value(of)); };
        if (const std::string_view sign = taken(sums); !sign.empty())
            return node_of(
                std::string(sign), [](const NameValue&) { return Json(0); }, unary(), names_ != nullptr);
        Node value = part();
        if (!taken(powers).empty()) return node_of("^", value, unary(), names_ != nullptr);
        return value;
    }
    Node part() {
        Node value = single();
        while (token_ == "[" || token_.starts_with('.')) {
            if (token_ != "[") {
                value = [value, names = std::string(token_)](const NameValue& of) {
                    return member(value(of), names);
                };
                advance();
                continue;
            }
            advance();
            value = [value, place = choice()](const NameValue& of) {
                const Json list = value(of);
                return list.is_null() ? list : element(list, place(of));
            };
            need("]");
        }
        return value;
    }
    Node single() {
        if (take("(")) {
            Node value = choice();
            need(")");
            return value;
        }
        if (!is_single(token_)) {
            if (token_.empty() && before_.empty()) throw UserError("is empty");
            throw UserError(std::string(before_.empty() || is_operator(token_) ? token_ : before_) +
                            " lacks an operand");
        }
        const std::string token(token_);
        advance();
        if (token_ == "(")
            if (Node function = function_of(token)) return function;
        if (is_quote(token.front()))
            return [text = token.substr(1, token.size() - 2)](const NameValue&) { return Json(text); };
        if (token == "true" || token == "false")
            return [truth = token == "true"](const NameValue&) { return Json(truth); };
        require_known(token);
        if (const auto number = number_in(token))
            return [number = *number](const NameValue&) { return number; };
        used_.insert(token);
        return [token](const NameValue& of) { return of(token); };
    }
    /// Reads the values of a function of that name; null if there is none.
    Node function_of(const std::string& name) {
        const bool strict = names_ != nullptr;
        const auto values = [&] {
            advance();
            std::vector<Node> all{choice()};
            while (take(",")) all.push_back(choice());
            need(")");
            return all;
        };
        if (name == "min" || name == "max")
            return [all = values(), name, strict](const NameValue& of) {
                const auto numbers =
                    mapped(all, [&](const Node& one) { return number_of(one(of), name, strict); });
                return written_number(name == "min" ? *std::ranges::min_element(numbers)
                                                    : *std::ranges::max_element(numbers));
            };
        const auto* known =
            std::ranges::find(number_functions, std::string_view(name), &NumberFunction::name);
        if (name != "size" && known == number_functions.end()) return nullptr;
        const std::vector<Node> all = values();
        if (all.size() != 1)
            throw UserError(name + " has " + std::to_string(all.size()) + " values, expected one");
        if (name == "size")
            return [list = all[0]](const NameValue& of) {
                const Json value = list(of);
                return value.is_array() ? Json(value.size()) : Json();
            };
        return [value = all[0], known, strict](const NameValue& of) {
            return written_number(known->of(number_of(value(of), std::string(known->name), strict)));
        };
    }

    std::string_view rest_;            ///< behind `token_`
    std::string_view before_, token_;  ///< empty at the beginning, at the end
    const std::vector<std::string>* names_;
    int levels_ = 0;
    std::set<std::string> used_;
};

}  // namespace

Formula::Formula(const std::string& text) : text_(text) {
    read(nullptr);
}

Formula::Formula(const std::string& text, const std::vector<std::string>& names, std::string place)
    : text_(text), place_(std::move(place)) {
    read(&names);
}

void Formula::read(const std::vector<std::string>* names) {
    try {
        FormulaReader reader(text_, names);
        root_ = reader.read();
        used_ = reader.used();
    } catch (const UserError& mistake) {
        fail(mistake.what());
    }
}

void Formula::fail(const std::string& mistake) const {
    throw UserError(
        one_line((place_.empty() ? "formula " : place_ + ": is ") + in_quotes(text_, 200) + ": " + mistake));
}

Json Formula::value_over(const Json& values) const {
    try {
        return root_([&](const std::string& name) { return values.at(name); });
    } catch (const UserError& mistake) {
        fail(mistake.what());
    }
}

bool Formula::holds(const Json& values) const {
    const Json value = value_over(values);
    if (!value.is_boolean()) fail("gives " + shown(value) + ", expected a comparison");
    return value.get<bool>();
}

double Formula::number(const Json& values) const {
    const Json value = value_over(values);
    if (!value.is_number() && !value.is_boolean())
        fail("gives " + shown(value) + ", expected a finite number");
    return number_of(value, "", true);
}

Formulas formulas_at(const std::string& place, const std::vector<std::string>& texts,
                     const std::vector<std::string>& names) {
    Formulas formulas;
    for (const std::string& text : texts)
        formulas.emplace_back(text, names, place + "/" + std::to_string(formulas.size()));
    return formulas;
}

}  // namespace overlap
