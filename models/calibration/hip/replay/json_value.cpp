// Reads JSON where no JSON library is installed; no GPU code.

#include "models/calibration/hip/replay/json_value.hpp"

#include <cmath>
#include <cstdlib>

#include "models/calibration/hip/case_list.hpp"

namespace overlap::hip {

class JsonReader {
public:
    explicit JsonReader(const std::string& text) : text_(text) {}

    JsonValue all() {
        JsonValue value = read("");
        space();
        if (at_ != text_.size()) fail("more after the end");
        return value;
    }

private:
    using Kind = JsonValue::Kind;

    [[noreturn]] void fail(const std::string& what) const {
        throw UserError("no JSON: " + what + " at byte " + std::to_string(at_));
    }
    void space() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
            ++at_;
    }
    char next() {
        space();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char wanted) {
        if (next() != wanted) return false;
        ++at_;
        return true;
    }
    bool word(std::string_view name) {
        if (text_.compare(at_, name.size(), name) != 0) return false;
        at_ += name.size();
        return true;
    }

    JsonValue read(const std::string& where) {
        JsonValue value;
        value.where_ = where;
        const char first = next();
        const std::size_t begin = at_;
        if (++depth_ > 64) fail("nested too deep");
        if (first == '{') {
            value.kind_ = Kind::object;
            list('}', [&] {
                next();
                value.keys_.push_back(string());
                if (!take(':')) fail("no ':' after a key");
                value.items_.push_back(read(where + "/" + value.keys_.back()));
            });
        } else if (first == '[') {
            value.kind_ = Kind::array;
            list(']',
                 [&] { value.items_.push_back(read(where + "/" + std::to_string(value.items_.size()))); });
        } else if (first == '"') {
            value.kind_ = Kind::text;
            value.text_ = string();
        } else if (word("true") || word("false")) {
            value.kind_ = Kind::boolean;
            value.boolean_ = first == 't';
        } else if (!word("null")) {
            value.kind_ = Kind::number;
            char* end = nullptr;
            value.number_ = std::strtod(text_.c_str() + at_, &end);
            if (end == text_.c_str() + at_) fail("no value");
            at_ = end - text_.c_str();
        }
        --depth_;
        // Deeper values are never requested
        if (depth_ < 4) value.source_ = text_.substr(begin, at_ - begin);
        return value;
    }

    template <class Item>
    void list(char end, Item&& item) {
        ++at_;
        if (take(end)) return;
        do item();
        while (take(','));
        if (!take(end)) fail(std::string("no '") + end + "'");
    }

    std::string string() {
        if (at_ >= text_.size() || text_[at_] != '"') fail("no text in quotes");
        std::string result;
        for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
            if (text_[at_] != '\\') {
                result += text_[at_];
                continue;
            }
            const char escaped = ++at_ < text_.size() ? text_[at_] : '\0';
            if (escaped == 'n')
                result += '\n';
            else if (escaped == 't')
                result += '\t';
            else if (escaped == '"' || escaped == '\\' || escaped == '/')
                result += escaped;
            else
                fail("an escape other than \\n, \\t, \\\", \\\\, \\/");
        }
        if (at_ == text_.size()) fail("a text without end");
        ++at_;
        return result;
    }

    const std::string& text_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

JsonValue JsonValue::read(const std::string& text) {
    return JsonReader(text).all();
}

void JsonValue::need(Kind kind, const char* name) const {
    if (kind_ != kind) throw UserError((where_.empty() ? "/" : where_) + ": expected " + name);
}

const JsonValue* JsonValue::find(std::string_view key) const {
    need(Kind::object, "an object");
    for (std::size_t i = 0; i < keys_.size(); ++i)
        if (keys_[i] == key) return &items_[i];
    return nullptr;
}

const JsonValue& JsonValue::at(std::string_view key) const {
    if (const JsonValue* found = find(key)) return *found;
    throw UserError((where_.empty() ? "/" : where_) + ": has no '" + std::string(key) + "'");
}

const std::vector<JsonValue>& JsonValue::items() const {
    need(Kind::array, "a list");
    return items_;
}

std::int64_t JsonValue::whole() const {
    need(Kind::number, "a number");
    if (number_ != std::floor(number_) || std::abs(number_) > 9e15)
        throw UserError(where_ + ": expected a whole number");
    return static_cast<std::int64_t>(number_);
}

const std::string& JsonValue::text() const {
    need(Kind::text, "a text");
    return text_;
}

bool JsonValue::boolean() const {
    need(Kind::boolean, "true or false");
    return boolean_;
}

}  // namespace overlap::hip
