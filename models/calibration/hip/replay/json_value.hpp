#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace overlap::hip {

/// A JSON value. `where` in errors is its path in the text, such as "/tasks/3/from".
class JsonValue {
public:
    /// Throws UserError if `text` is no JSON.
    static JsonValue read(const std::string& text);

    /// All of these throw UserError if the value is of another kind or the key is missing.
    const JsonValue& at(std::string_view key) const;
    const JsonValue* find(std::string_view key) const;  ///< null if the key is missing
    const std::vector<JsonValue>& items() const;
    bool is_object() const { return kind_ == Kind::object; }
    bool is_array() const { return kind_ == Kind::array; }
    bool is_text() const { return kind_ == Kind::text; }
    std::int64_t whole() const;  ///< of a number without a fraction
    const std::string& text() const;
    bool boolean() const;
    /// The JSON text of this value.
    const std::string& source() const { return source_; }
    const std::string& where() const { return where_; }

private:
    friend class JsonReader;
    enum class Kind { null, boolean, number, text, array, object };
    void need(Kind kind, const char* name) const;

    Kind kind_ = Kind::null;
    bool boolean_ = false;
    double number_ = 0;
    std::string text_, source_, where_;
    std::vector<JsonValue> items_;
    std::vector<std::string> keys_;  ///< of items_, for an object
};

}  // namespace overlap::hip
