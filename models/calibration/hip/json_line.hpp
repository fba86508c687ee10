#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace overlap::hip {

/// One flat JSON object on one line, written in order. The benchmark runs where no JSON library is installed.
class JsonLine {
public:
    JsonLine& add(std::string_view key, std::string_view text);
    JsonLine& add(std::string_view key, const char* text) { return add(key, std::string_view(text)); }
    JsonLine& add(std::string_view key, double number);
    JsonLine& add(std::string_view key, std::int64_t number);
    JsonLine& add(std::string_view key, int number) { return add(key, static_cast<std::int64_t>(number)); }
    JsonLine& add(std::string_view key, const std::vector<double>& numbers);
    JsonLine& add(std::string_view key, const std::vector<std::string>& texts);
    JsonLine& add(std::string_view key, const std::vector<std::vector<double>>& rows);
    /// Adds a value that is already JSON.
    JsonLine& add_json(std::string_view key, std::string_view json);
    JsonLine& append(const JsonLine& more);
    std::string text() const { return "{" + members_ + "}"; }

private:
    void key(std::string_view name);
    std::string members_;
};

}  // namespace overlap::hip
