#include "sim/engine/thread_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace overlap {
namespace {

/// Compute units whose times differ by no more than rounding count as one group.
constexpr double same_time = 1 + 1e-9;

}  // namespace

void ThreadBlocks::place(int units, int blocks, double done, double pace) {
    advance(done);
    const int each = blocks / units, more = blocks % units;
    add(more, each + 1, pace);
    add(units - more, each, pace);
    waiting_ -= blocks;
}

double ThreadBlocks::pace() const {
    double pace = 0;
    for (const Group& group : groups_) pace += group.units * group.pace;
    return pace;
}

double ThreadBlocks::least_time() const {
    double time = std::numeric_limits<double>::infinity();
    for (const Group& group : groups_) time = std::min(time, group.time());
    return time;
}

double ThreadBlocks::next() const {
    if (ends_next()) return 1;
    return groups_.empty() ? std::numeric_limits<double>::infinity() : done_ + least_time() * pace();
}

bool ThreadBlocks::ends_next() const {
    const double end = least_time() * same_time;
    return !groups_.empty() && (waiting_ == 0 || std::isinf(share_)) &&
           std::all_of(groups_.begin(), groups_.end(), [&](const Group& g) { return g.time() <= end; });
}

int ThreadBlocks::go_on() {
    const double end = least_time() * same_time, done = next(), time = (done - done_) / pace();
    const auto over = [&](const Group& group) { return group.time() <= end; };
    int leaving = 0;
    for (const Group& group : groups_)
        if (over(group)) leaving += group.units;
    groups_.erase(std::remove_if(groups_.begin(), groups_.end(), over), groups_.end());
    work(time);
    done_ = done;
    return leaving;
}

void ThreadBlocks::advance(double done) {
    if (!groups_.empty()) work((done - done_) / pace());
    done_ = done;
}

void ThreadBlocks::work(double time) {
    for (Group& group : groups_) group.left = std::max(group.left - time * group.pace, 0.0);
}

}  // namespace overlap
