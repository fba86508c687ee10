#pragma once

#include <atomic>
#include <iostream>
#include <string>

#include "sim/core/shown.hpp"

namespace overlap {

inline std::atomic<bool> notices_are_off{false};  ///< by -q

/// A line on standard error on how far the program is, or on what it leaves out.
inline void notice(const std::string& line) {
    if (!notices_are_off) std::cerr << one_line("sim: " + line) << '\n';
}

}  // namespace overlap
