#pragma once

#include <atomic>
#include <chrono>
#include <iostream>
#include <string>

#include "sim/core/shown.hpp"

namespace overlap {

inline std::atomic<bool> notices_are_off{false};  ///< by -q

/// A line on standard error on how far the program is, or on what it leaves out.
inline void notice(const std::string& line) {
    if (!notices_are_off) std::cerr << one_line("sim: " + line) << '\n';
}

/// Says every 2 s how far something is that may take long.
class SlowNotice {
public:
    /// `line`: makes the text of the notice.
    template <class Line>
    void at(Line line) {
        const auto now = std::chrono::steady_clock::now();
        if (now < next_) return;
        next_ = now + apart;
        notice(line());
    }

private:
    static constexpr std::chrono::seconds apart{2};
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + apart;
};

}  // namespace overlap
