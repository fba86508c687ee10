#include "sim/sweep/expression_syntax.hpp"

#include <algorithm>
#include <cctype>

#include "sim/core/errors.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

struct Token {
    enum class Kind { operand, logical, negation, opening, closing, separator, sign, other, end };
    Kind kind;
    std::string_view text;

    bool is_before_operand() const { return kind == Kind::opening || kind == Kind::separator; }
    bool is_after_operand() const {
        return kind == Kind::closing || kind == Kind::separator || kind == Kind::end;
    }
};

bool is_logical(std::string_view text) {
    return text == "and" || text == "or" || text == "&&" || text == "||";
}

Token::Kind kind_of(char symbol) {
    using enum Token::Kind;
    const auto is_in = [&](std::string_view symbols) {
        return symbols.find(symbol) != std::string_view::npos;
    };
    return is_in("([{")   ? opening
           : is_in(")]}") ? closing
           : is_in(",?:") ? separator
           : is_in("+-")  ? sign
                          : other;
}

Token first_token(std::string_view text) {
    using enum Token::Kind;
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (text.empty()) return {end, text};
    if (text.front() == '"')
        return {operand, text.substr(0, std::min(text.find('"', 1), text.size() - 1) + 1)};
    if (const std::string_view word = text.substr(0, text.find_first_not_of(name_letters)); !word.empty())
        return {is_logical(word) ? logical : operand, word};
    const std::string_view two = text.substr(0, 2);
    if (is_logical(two)) return {logical, two};
    if (two == "!=") return {other, two};
    return {text.front() == '!' ? negation : kind_of(text.front()), text.substr(0, 1)};
}

bool begins_with_operator(std::string_view word) {
    return word.starts_with("and") || word.starts_with("or");
}

/// A word that muparserx would take apart: "andor", "3and".
bool runs_together(std::string_view word, const std::vector<std::string>& names) {
    if (std::isdigit(static_cast<unsigned char>(word.front())))
        return word.find_first_not_of("0123456789.eExX") != std::string_view::npos;
    return begins_with_operator(word) && !contains(names, word);
}

std::string wrong_between(const Token& before, const Token& token) {
    using enum Token::Kind;
    if (token.kind == logical && (before.kind == logical || before.is_before_operand()))
        return std::string(token.text) + " lacks an operand";
    if (before.kind == logical && token.is_after_operand())
        return std::string(before.text) + " lacks an operand";
    if (before.kind == negation && (token.kind == logical || token.kind == other || token.is_after_operand()))
        return "! lacks an operand";
    if (token.kind == negation && (before.kind == operand || before.kind == closing))
        return "! comes after a value";
    if (token.kind == operand && before.kind == operand)
        return "there is no operator before " + in_quotes(token.text);
    return "";
}

}  // namespace

std::string syntax_error(std::string_view expression, const std::vector<std::string>& names) {
    Token before{Token::Kind::opening, {}};
    while (before.kind != Token::Kind::end) {
        const Token token = first_token(expression);
        if (token.kind == Token::Kind::operand && token.text.front() != '"' &&
            runs_together(token.text, names))
            return "there is no " + in_quotes(token.text) + suggestion(token.text, names);
        if (std::string wrong = wrong_between(before, token); !wrong.empty()) return wrong;
        expression.remove_prefix(static_cast<std::size_t>(token.text.end() - expression.begin()));
        before = token;
    }
    return "";
}

std::string spelled_for_parser(const std::string& name) {
    return (begins_with_operator(name) ? "_" : "") + name;
}

std::string spelled_for_parser(std::string_view expression, const std::vector<std::string>& names) {
    std::string text;
    for (Token token = first_token(expression); token.kind != Token::Kind::end;
         token = first_token(expression)) {
        const auto blanks = static_cast<std::size_t>(token.text.begin() - expression.begin());
        text += expression.substr(0, blanks);
        const bool is_name = contains(names, token.text);
        text += is_name ? spelled_for_parser(std::string(token.text)) : std::string(token.text);
        expression.remove_prefix(blanks + token.text.size());
    }
    return text;
}

}  // namespace overlap
