#include "sim/sweep/expressions.hpp"

#include <muparserx/mpParser.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <deque>

#include "sim/core/shown.hpp"

namespace overlap {
namespace {

using namespace mup;

/// a % b, the remainder of whole numbers, which muparserx lacks.
class Remainder : public IOprtBin {
public:
    Remainder() : IOprtBin("%", prMUL_DIV, oaLEFT) {}
    void Eval(ptr_val_type& result, const ptr_val_type* arguments, int) override {
        for (const int side : {0, 1})
            if (!arguments[side]->IsNonComplexScalar())
                throw ParserError("% needs a number on both sides, not " + arguments[side]->ToString());
        *result = std::fmod(arguments[0]->GetFloat(), arguments[1]->GetFloat());
    }
    const char_type* GetDesc() const override { return "a % b: remainder of a / b"; }
    IToken* Clone() const override { return new Remainder(*this); }
};

/// !a.
class Not : public IOprtInfix {
public:
    Not() : IOprtInfix("!", prINFIX) {}
    void Eval(ptr_val_type& result, const ptr_val_type* arguments, int) override {
        *result = !arguments[0]->GetBool();
    }
    const char_type* GetDesc() const override { return "!a: not a"; }
    IToken* Clone() const override { return new Not(*this); }
};

bool is_beyond_integers(const Json& json) {
    return json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
}

void assign(Value& value, const Json& json) {
    if (json.is_boolean()) {
        value = json.get<bool>();
    } else if (json.is_number_integer() && !is_beyond_integers(json)) {
        value = static_cast<int_type>(json.get<std::int64_t>());
    } else if (json.is_number()) {
        value = json.get<double>();
    } else {
        value = json.is_string() ? json.get<std::string>() : json_text(json);
    }
}

constexpr std::size_t longest_expression = 10'000;

const std::string name_letters = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.";

bool is_logical(std::string_view token) {
    return token == "and" || token == "or" || token == "&&" || token == "||";
}

/// Texts with letters of names that muparserx would take apart: "andor", "3and".
bool runs_together(const std::string& word, const std::vector<std::string>& names) {
    if (std::isdigit(static_cast<unsigned char>(word.front())))
        return word.find_first_not_of("0123456789.eExX") != std::string::npos;
    return (word.starts_with("and") || word.starts_with("or")) && !is_logical(word) &&
           std::find(names.begin(), names.end(), word) == names.end();
}

/// What is wrong with an expression that muparserx would take, or crash on; empty where nothing is.
std::string wrong_with(std::string_view text, const std::vector<std::string>& names) {
    constexpr std::string_view before_operands = "(,?:[{", after_operands = "),?:]}";
    const auto is_one_of = [](std::string_view token, std::string_view characters) {
        return token.size() == 1 && characters.find(token) != std::string_view::npos;
    };
    std::string_view before = "(";
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
        std::size_t length = std::min(text.find_first_not_of(name_letters), text.size());
        if (length > 0 && runs_together(std::string(text.substr(0, length)), names))
            return "there is no " + in_quotes(text.substr(0, length));
        if (text.starts_with('"')) length = std::min(text.find('"', 1), text.size() - 1) + 1;
        if (length == 0) {
            const bool two = is_logical(text.substr(0, 2)) || text.starts_with("!=");
            length = std::min<std::size_t>(text.size(), two ? 2 : 1);
        }
        const std::string_view token = text.substr(0, length);
        const bool after_operand = !before.empty() && !is_logical(before) &&
                                   (name_letters.find(before.back()) != std::string::npos ||
                                    before.back() == '"' || is_one_of(before, ")]"));
        if (token == "!" && after_operand) return "! comes after a value";
        const bool is_operand =
            !token.empty() && !is_logical(token) &&
            (token.front() == '"' || name_letters.find(token.front()) != std::string::npos);
        if (is_operand && after_operand && before != ")")
            return "there is no operator before " + in_quotes(token);
        if (before == "!" && (token.empty() || is_one_of(token, "<>=*/%&|^,?:)]}")))
            return "! lacks an operand";
        if (is_logical(token) && (is_logical(before) || is_one_of(before, before_operands)))
            return std::string(token) + " lacks an operand";
        if (is_logical(before) && (token.empty() || is_one_of(token, after_operands)))
            return std::string(before) + " lacks an operand";
        if (token.empty()) return "";
        before = token;
        text.remove_prefix(length);
    }
}

}  // namespace

struct Expressions::Parsers {
    std::string origin;
    std::vector<std::string> names, expressions;
    std::deque<Value> values;  ///< of the names; parsers keep addresses of them
    std::deque<ParserX> parsers;

    [[noreturn]] void fail(std::size_t number, const std::string& message) const {
        throw UserError(one_line(origin + "/" + std::to_string(number) + ": is " +
                                 in_quotes(expressions[number]) + ": " + message));
    }
    std::string explained(const ParserError& error) const {
        if (error.GetCode() == ecUNASSIGNABLE_TOKEN) {
            const std::string& rest = error.GetToken();
            const std::string name = rest.substr(0, rest.find_first_not_of(name_letters));
            if (!name.empty()) return "there is no " + in_quotes(name) + suggestion(name, names);
        }
        std::string message = error.GetMsg();
        // If muparserx finds an internal error instead of an error in the expression, its
        // text names its source file.
        if (message.starts_with("Assertion ")) return "is no expression that can be computed";
        while (!message.empty() && message.back() == '.') message.pop_back();
        return message;
    }
    void take(const Json& given) {
        for (std::size_t i = 0; i < names.size(); ++i) assign(values[i], given.at(names[i]));
    }
    Value result(std::size_t number) {
        try {
            return Value(parsers[number].Eval());
        } catch (const ParserError& error) {
            fail(number, explained(error));
        } catch (const MatrixError& error) {
            fail(number, error.what());
        }
    }
};

Expressions::Expressions(const std::vector<std::string>& expressions, const std::vector<std::string>& names,
                         const std::string& origin)
    : parsers_(new Parsers{origin, names, expressions, {}, {}}) {
    for (std::size_t i = 0; i < names.size(); ++i) parsers_->values.emplace_back(int_type{1});
    for (std::size_t i = 0; i < expressions.size(); ++i) {
        ParserX& parser = parsers_->parsers.emplace_back(pckCOMMON | pckNON_COMPLEX | pckSTRING);
        parser.EnableAutoCreateVar(false);
        parser.DefineNameChars(name_letters.c_str());
        if (expressions[i].size() > longest_expression)
            parsers_->fail(i, "has " + std::to_string(expressions[i].size()) + " characters, the most are " +
                                  std::to_string(longest_expression));
        if (const std::string wrong = wrong_with(expressions[i], names); !wrong.empty())
            parsers_->fail(i, wrong);
        try {
            parser.DefineOprt(new Remainder);
            parser.DefineInfixOprt(new Not);
            for (std::size_t name = 0; name < names.size(); ++name)
                parser.DefineVar(names[name], Variable(&parsers_->values[name]));
            parser.SetExpr(expressions[i]);
            parser.GetExprVar();  // parses
        } catch (const ParserError& error) {
            parsers_->fail(i, parsers_->explained(error));
        } catch (const MatrixError& error) {
            parsers_->fail(i, error.what());
        }
    }
}

Expressions::~Expressions() = default;

bool Expressions::all_hold(const Json& values) {
    parsers_->take(values);
    for (std::size_t i = 0; i < parsers_->parsers.size(); ++i) {
        const Value result = parsers_->result(i);
        if (result.GetType() != 'b')
            parsers_->fail(i, "gives " + result.ToString() + ", expected a comparison");
        if (!result.GetBool()) return false;
    }
    return true;
}

double Expressions::number(std::size_t expression, const Json& values) {
    parsers_->take(values);
    const Value result = parsers_->result(expression);
    if (result.GetType() == 'b') return result.GetBool() ? 1 : 0;
    if (!result.IsScalar() || !std::isfinite(result.GetFloat()))
        parsers_->fail(expression, "gives " + result.ToString() + ", expected a finite number");
    return result.GetFloat();
}

}  // namespace overlap
