#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace overlap {

/// How far a long computation is: on a terminal one line that is drawn again, elsewhere a plain line now and
/// then.
class ProgressLine {
public:
    /// `done` of `size` steps have been done before.
    ProgressLine(std::ostream& out, bool terminal, std::uint64_t done, std::uint64_t size);

    /// Draws if the last drawing is old enough. `note` is put behind the count: "580 points, 3 failed".
    void show(std::uint64_t done, const std::string& note);
    /// Takes the line off the terminal.
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
