#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/units.hpp"

namespace overlap {

/// Width of the text report.
inline constexpr std::size_t report_columns = 100;
/// Width of the names at the left of a line.
inline constexpr std::size_t label_columns = 11;

/// `value` with this many decimals, never "-0.0"; "n/a" where it isn't finite.
std::string fixed(double value, int decimals);
/// "12.3 %" of 0.123; signed: "+12.3 %".
std::string percent_text(double share, int decimals = 1);
std::string signed_percent_text(double share);
/// `value` with at least four significant digits: "1.234", "12.34", "1234".
std::string significant(double value);
/// `value` with at most ten significant digits and no trailing zeros: "12.5", "5".
std::string plain(double value);
/// The fewest digits that read back to the same value.
std::string shortest(double value);
/// A time in us with one decimal.
std::string us_text(Seconds time);
/// Padded with spaces on the right (left-aligned) or on the left (right-aligned).
std::string left(std::string text, std::size_t width);
std::string right(std::string text, std::size_t width);
/// A bar of `share` · `width` marks, at least one where share isn't 0; '-'
/// instead of '#' where it is negative.
std::string bar(double share, std::size_t width);
/// One line of at most report_columns code points: control characters become spaces, the rest "...".
std::string clipped(std::string_view line);
/// `label`, then `text` broken at spaces into at most `most_lines` lines, the last one clipped.
std::vector<std::string> field(const std::string& label, const std::string& text, std::size_t most_lines = 2);

/// One unit and number of decimals for all times of a report, so that they line up and can be added:
/// microseconds below 10 ms, else milliseconds; at least four significant digits of the longest time.
class TimeScale {
public:
    explicit TimeScale(Seconds longest);

    std::string format(Seconds time) const { return fixed(value(time), decimals_); }
    bool shows_zero(Seconds time) const;
    double value(Seconds time) const { return time.si() * per_second_; }
    const std::string& unit() const { return unit_; }

private:
    double per_second_ = 1e6;
    int decimals_ = 1;
    std::string unit_ = "us";
};

}  // namespace overlap
