#include "sim/core/available_memory.hpp"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <mutex>

#include "sim/core/environment.hpp"
#include "sim/core/errors.hpp"

namespace overlap {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// MemAvailable of /proc/meminfo: free memory and caches that can be dropped.
double left_of_machine() {
    std::ifstream in("/proc/meminfo");
    for (std::string key, rest; in >> key && std::getline(in, rest);)
        if (key == "MemAvailable:") return std::stod(rest) * 1024;
    return unlimited;
}

/// Limit of control groups, version 2, which containers and batch systems set.
double left_of_group() {
    const auto number = [](const char* path) {
        std::ifstream in(path);
        double value = 0;
        return in >> value ? value : unlimited;  // "max": none
    };
    const double most = number("/sys/fs/cgroup/memory.max");
    return most == unlimited ? unlimited : most - number("/sys/fs/cgroup/memory.current");
}

/// To read it takes as long as a small run, so what was read holds for a while.
Bytes left() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds a_while{50};
    static std::mutex mutex;
    static Bytes last;
    static Clock::time_point outdated;
    const std::lock_guard lock(mutex);
    if (const Clock::time_point now = Clock::now(); now >= outdated) {
        last = Bytes(std::min(left_of_machine(), left_of_group()));
        outdated = now + a_while;
    }
    return last;
}

}  // namespace

Bytes available_memory() {
    if (const auto given = number_from_environment("OVERLAP_MEMORY_GB", {1e-6, 1e9}))
        return gigabytes(*given);
    return left();
}

std::string memory_text(Bytes bytes) {
    std::array<char, 32> text{};
    if (bytes < gigabytes(1))
        std::snprintf(text.data(), text.size(), "%.0f MB", bytes.si() * 1e-6);
    else
        std::snprintf(text.data(), text.size(), bytes < gigabytes(100) ? "%.1f GB" : "%.0f GB",
                      bytes.si() * 1e-9);
    return text.data();
}

void require_memory_for(const std::string& what, Bytes needed, Bytes available, const std::string& flag) {
    if (needed <= available) return;
    throw UserError(what + " take about " + memory_text(needed) + " of memory, but " +
                    memory_text(available) + " are available (to run it nevertheless: " + flag +
                    "OVERLAP_MEMORY_GB=N in the environment)");
}

}  // namespace overlap
