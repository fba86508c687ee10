#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace overlap {

/// Progress of a long computation: on a terminal one line that is redrawn,
/// elsewhere a line from time to time.
class ProgressLine {
public:
    /// `done` of `size` steps were already done before.
    ProgressLine(std::ostream& out, bool terminal, std::uint64_t done, std::uint64_t size);

    /// Draws if the last drawing is old enough. `note` follows the count: "580 points, 3 failed".
    void show(std::uint64_t done, const std::string& note);
    /// Erases the line from the terminal.
    void clear();

private:
    using Clock = std::chrono::steady_clock;

    std::ostream& out_;
    bool terminal_;
    std::uint64_t before_, size_;
    Clock::time_point begun_, drawn_;
};

/// "7 s", "3:07", "2:03:07".
std::string duration_text(double seconds);

}  // namespace overlap
