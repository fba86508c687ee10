#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace overlap {

/// Shows the progress of work that takes longer than 2 s on standard error: on a terminal one line that is
/// redrawn and finally erased, elsewhere a line every ten seconds. Any thread may count steps.
class ProgressReporter {
public:
    /// `unit`: name of the steps, "simulations". `size`: upper bound of their number.
    ProgressReporter(std::string unit, std::uint64_t size);
    ~ProgressReporter();
    ProgressReporter(const ProgressReporter&) = delete;
    ProgressReporter& operator=(const ProgressReporter&) = delete;

    void add() { ++done_; }
    /// Counts a step at each call, as long as the reporter lives: in an argument until the called function returns.
    std::function<void()> counter() {
        return [this] { add(); };
    }
    void reach(std::uint64_t done) { done_ = done; }

private:
    void draw();

    std::string unit_;
    std::uint64_t size_;
    std::atomic<std::uint64_t> done_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
    bool over_ = false;
    std::thread drawer_;
};

}  // namespace overlap
