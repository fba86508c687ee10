#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace overlap {

/// Shows on standard error how far something is that takes longer than 2 s: on a terminal a line that is drawn
/// again, elsewhere a line every ten seconds. Shows nothing before, and takes its line off a terminal in the
/// end. Steps may be counted by any thread.
class ProgressReporter {
public:
    /// `unit`: what the steps are, "simulations". `size`: at most so many.
    ProgressReporter(std::string unit, std::uint64_t size);
    ~ProgressReporter();
    ProgressReporter(const ProgressReporter&) = delete;
    ProgressReporter& operator=(const ProgressReporter&) = delete;

    void add() { ++done_; }
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
