// Writes the results of the microbenchmark; no GPU code.

#include "models/calibration/hip/json_line.hpp"

#include <cmath>
#include <cstdio>

namespace overlap::hip {
namespace {

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        if (static_cast<unsigned char>(c) < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", c);
            result += escape;
        } else {
            result += c;
        }
    }
    return result + "\"";
}

std::string written(double number) {
    if (!std::isfinite(number)) return "null";
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", number);  // more digits than the GPU clocks resolve
    return text;
}

template <class Items, class Write>
std::string array(const Items& items, Write write) {
    std::string result = "[";
    for (const auto& item : items) result += (result.size() > 1 ? "," : "") + write(item);
    return result + "]";
}

}  // namespace

void JsonLine::key(std::string_view name) {
    if (!members_.empty()) members_ += ",";
    members_ += quoted(name) + ":";
}

JsonLine& JsonLine::add(std::string_view name, std::string_view text) {
    key(name);
    members_ += quoted(text);
    return *this;
}

JsonLine& JsonLine::add(std::string_view name, double number) {
    key(name);
    members_ += written(number);
    return *this;
}

JsonLine& JsonLine::add(std::string_view name, std::int64_t number) {
    key(name);
    members_ += std::to_string(number);
    return *this;
}

JsonLine& JsonLine::add(std::string_view name, const std::vector<double>& numbers) {
    key(name);
    members_ += array(numbers, written);
    return *this;
}

JsonLine& JsonLine::add(std::string_view name, const std::vector<std::string>& texts) {
    key(name);
    members_ += array(texts, quoted);
    return *this;
}

JsonLine& JsonLine::add(std::string_view name, const std::vector<std::vector<double>>& rows) {
    key(name);
    members_ += array(rows, [](const std::vector<double>& row) { return array(row, written); });
    return *this;
}

JsonLine& JsonLine::add_json(std::string_view name, std::string_view json) {
    key(name);
    members_ += json;
    return *this;
}

JsonLine& JsonLine::append(const JsonLine& more) {
    if (!members_.empty() && !more.members_.empty()) members_ += ",";
    members_ += more.members_;
    return *this;
}

}  // namespace overlap::hip
