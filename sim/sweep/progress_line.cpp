#include "sim/sweep/progress_line.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

constexpr std::chrono::milliseconds between_drawings{200};
constexpr std::chrono::seconds between_lines{10};

std::string two_digits(std::int64_t number) {
    return (number < 10 ? "0" : "") + std::to_string(number);
}

}  // namespace

std::string duration_text(double seconds) {
    const auto whole = static_cast<std::int64_t>(std::llround(seconds));
    if (whole < 60) return std::to_string(whole) + " s";
    const std::string rest = two_digits(whole % 60);
    if (whole < 3600) return std::to_string(whole / 60) + ":" + rest;
    return std::to_string(whole / 3600) + ":" + two_digits(whole / 60 % 60) + ":" + rest;
}

ProgressLine::ProgressLine(std::ostream& out, bool terminal, std::uint64_t done, std::uint64_t size)
    : out_(out), terminal_(terminal), before_(done), size_(size), begun_(Clock::now()), drawn_(begun_) {}

void ProgressLine::show(std::uint64_t done, const std::string& note) {
    const Clock::time_point now = Clock::now();
    if (now - drawn_ < (terminal_ ? Clock::duration(between_drawings) : Clock::duration(between_lines)))
        return;
    drawn_ = now;
    const double seconds = std::chrono::duration<double>(now - begun_).count();
    const double rate = static_cast<double>(done - before_) / seconds;
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(size_));
    std::ostringstream line;
    if (terminal_) line << "\r\033[K" << left(bar(share, 24), 24) << ' ';
    line << percent_text(share, 0) << "  " << done << " of " << size_ << "  " << note << "  ";
    if (rate > 0)
        line << fixed(rate, rate < 10 ? 1 : 0) << "/s  "
             << duration_text(static_cast<double>(size_ - std::min(size_, done)) / rate) << " left";
    else
        line << duration_text(seconds) << " so far";
    if (!terminal_) line << '\n';
    out_ << line.str() << std::flush;
}

void ProgressLine::clear() {
    if (terminal_) out_ << "\r\033[K" << std::flush;
}

}  // namespace overlap
