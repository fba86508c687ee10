#include "sim/sweep/expressions.hpp"

#include <muparserx/mpParser.h>

#include <cmath>
#include <deque>

#include "sim/core/shown.hpp"
#include "sim/sweep/expression_syntax.hpp"

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
        value = unquoted(json);
    }
}

constexpr std::size_t longest_expression = 10'000;

}  // namespace

struct Expressions::Parsers {
    std::string origin;
    std::vector<std::string> names, expressions;
    std::deque<Value> values;  ///< of the names; parsers keep addresses of them
    std::vector<bool> used;    ///< of the names
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
        for (std::size_t i = 0; i < names.size(); ++i)
            if (used[i]) assign(values[i], given.at(names[i]));
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
    : parsers_(new Parsers{origin, names, expressions, {}, std::vector<bool>(names.size()), {}}) {
    for (std::size_t i = 0; i < names.size(); ++i) parsers_->values.emplace_back(int_type{1});
    for (std::size_t i = 0; i < expressions.size(); ++i) {
        ParserX& parser = parsers_->parsers.emplace_back(pckCOMMON | pckNON_COMPLEX | pckSTRING);
        parser.EnableAutoCreateVar(false);
        parser.DefineNameChars(name_letters.c_str());
        if (expressions[i].size() > longest_expression)
            parsers_->fail(i, "has " + std::to_string(expressions[i].size()) + " characters, the most are " +
                                  std::to_string(longest_expression));
        if (const std::string wrong = syntax_error(expressions[i], names); !wrong.empty())
            parsers_->fail(i, wrong);
        try {
            parser.DefineOprt(new Remainder);
            parser.DefineInfixOprt(new Not);
            for (std::size_t name = 0; name < names.size(); ++name)
                parser.DefineVar(spelled_for_parser(names[name]), Variable(&parsers_->values[name]));
            parser.SetExpr(spelled_for_parser(expressions[i], names));
            const var_maptype& used = parser.GetExprVar();  // parses
            for (std::size_t name = 0; name < names.size(); ++name)
                if (used.contains(spelled_for_parser(names[name]))) parsers_->used[name] = true;
        } catch (const ParserError& error) {
            parsers_->fail(i, parsers_->explained(error));
        } catch (const MatrixError& error) {
            parsers_->fail(i, error.what());
        }
    }
}

Expressions::~Expressions() = default;

bool Expressions::use(const std::string& name) const {
    for (std::size_t i = 0; i < parsers_->names.size(); ++i)
        if (parsers_->used[i] && parsers_->names[i] == name) return true;
    return false;
}

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
