#include "sim/report/text_format.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace overlap {
namespace {

bool begins_code_point(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

int decimals_for(double largest) {
    return largest >= 100 ? 1 : largest >= 10 ? 2 : 3;
}

}  // namespace

std::string fixed(double value, int decimals) {
    if (!std::isfinite(value)) return "n/a";
    const int size = std::snprintf(nullptr, 0, "%.*f", decimals, value);
    std::string text(static_cast<std::size_t>(size), '\0');
    std::snprintf(text.data(), text.size() + 1, "%.*f", decimals, value);
    if (text.find_first_not_of("-0.") == std::string::npos && text[0] == '-') text.erase(0, 1);
    return text;
}

std::string percent_text(double share, int decimals) {
    return fixed(100 * share, decimals) + " %";
}

std::string signed_percent_text(double share) {
    return (share > 0 ? "+" : "") + percent_text(share);
}

std::string us_text(Seconds time) {
    return fixed(to_microseconds(time), 1);
}

std::string significant(double value) {
    const double size = std::abs(value);
    return fixed(value, size >= 1000 ? 0 : decimals_for(size));
}

std::string plain(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", value);
    return text;
}

std::string shortest(double value) {
    std::array<char, 32> digits;  // the longest shortest form of a double has 24 characters
    return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

std::string left(std::string text, std::size_t width) {
    if (text.size() < width) text.resize(width, ' ');
    return text;
}

std::string right(std::string text, std::size_t width) {
    if (text.size() < width) text.insert(0, width - text.size(), ' ');
    return text;
}

std::string bar(double share, std::size_t width) {
    if (!std::isfinite(share) || share == 0) return "";
    const double marks = std::round(std::min(std::abs(share), 1.0) * static_cast<double>(width));
    return std::string(std::max<std::size_t>(static_cast<std::size_t>(marks), 1), share < 0 ? '-' : '#');
}

std::string clipped(std::string_view line) {
    constexpr std::string_view ellipsis = "...";
    std::string text;
    std::size_t columns = 0;
    std::size_t room_for_ellipsis = 0;  // bytes of the leading code points that leave room for the ellipsis
    for (const char byte : line) {
        if (begins_code_point(byte)) {
            if (columns == report_columns - ellipsis.size()) room_for_ellipsis = text.size();
            if (++columns > report_columns) return text.substr(0, room_for_ellipsis).append(ellipsis);
        }
        const auto code = static_cast<unsigned char>(byte);
        text += code < 0x20 || code == 0x7F ? ' ' : byte;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

std::vector<std::string> field(const std::string& label, const std::string& text, std::size_t most_lines) {
    const std::size_t room = report_columns - label.size();
    const std::string indent(label.size(), ' ');
    std::vector<std::string> lines;
    const auto inside_code_point = [&](std::size_t at) {
        return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    };
    std::size_t begin = 0;
    do {
        std::size_t end = text.size(), next = end;
        if (end - begin > room && lines.size() + 1 < most_lines) {
            end = next = begin + room;
            if (const std::size_t space = text.rfind(' ', end); space != std::string::npos && space > begin) {
                end = space;
                next = space + 1;
            } else {
                while (end > begin + 1 && inside_code_point(end)) next = --end;
            }
        }
        lines.push_back(clipped((begin == 0 ? label : indent) + text.substr(begin, end - begin)));
        begin = next;
    } while (begin < text.size());
    return lines;
}

TimeScale::TimeScale(Seconds longest) {
    if (to_microseconds(longest) >= 10000) {
        per_second_ = 1e3;
        unit_ = "ms";
    }
    // Short times must be readable in long runs too
    decimals_ = decimals_for(value(longest) / (unit_ == "ms" ? 10 : 1));
}

bool TimeScale::shows_zero(Seconds time) const {
    return std::abs(value(time)) < 0.5 * std::pow(10.0, -decimals_);
}

}  // namespace overlap
