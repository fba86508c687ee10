#include "sim/commands/progress_reporter.hpp"

#include <unistd.h>

#include <iostream>

#include "sim/commands/terminal.hpp"
#include "sim/sweep/progress_line.hpp"

namespace overlap {
namespace {

constexpr std::chrono::seconds before_the_first{2};
constexpr std::chrono::milliseconds between_drawings{200};

}  // namespace

ProgressReporter::ProgressReporter(std::string unit, std::uint64_t size)
    : unit_(std::move(unit)), size_(size), drawer_([this] { draw(); }) {}

ProgressReporter::~ProgressReporter() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    changed_.notify_all();
    drawer_.join();
}

void ProgressReporter::draw() {
    ProgressLine line(std::cerr, isatty(STDERR_FILENO) == 1, 0, size_);
    std::unique_lock lock(mutex_);
    const auto is_over = [this] { return over_; };
    if (changed_.wait_for(lock, before_the_first, is_over) || is_quiet()) return;
    do line.show(done_, unit_);
    while (!changed_.wait_for(lock, between_drawings, is_over));
    line.clear();
}

}  // namespace overlap
