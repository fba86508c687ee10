#pragma once

#include <boost/container/small_vector.hpp>

namespace overlap {

/// How far the thread blocks of a kernel are, each with an equal share of its body, which are placed on units
/// as these come free: some may run, or be done, while others wait. A unit whose blocks are done leaves.
class ThreadBlocks {
public:
    ThreadBlocks() = default;
    explicit ThreadBlocks(int blocks) : waiting_(blocks), share_(1.0 / blocks) {}

    /// Blocks that have no unit yet.
    int waiting() const { return waiting_; }
    /// None is at work.
    bool waits() const { return groups_.empty(); }
    /// When `done` of the body is, so many blocks are placed on units, as evenly as can be. `pace`: the rate
    /// of each of these, in units that have all they need.
    void place(int units, int blocks, double done, double pace);
    /// The rate of all units at work, in units that have all they need.
    double pace() const;
    /// The share of the body at which units are next done; infinity where none is at work.
    double next() const;
    /// The body is over at `next`.
    bool ends_next() const;
    /// At `next`: returns how many units leave.
    int go_on();

private:
    /// Units in step.
    struct Group {
        int units;
        double pace;  ///< of each
        double left;  ///< of the body, for each of them to do
        double time() const { return left / pace; }
    };
    void add(int units, int each, double pace) {
        if (units > 0 && each > 0) groups_.push_back({units, pace, each * share_});
    }
    void advance(double done);
    void work(double time);
    /// Until the first group is done.
    double least_time() const;

    boost::container::small_vector<Group, 4> groups_;
    int waiting_ = 0;
    double share_ = 0;  ///< of the body, that a block does
    double done_ = 0;   ///< of the body, for which `Group::left` holds
};

}  // namespace overlap
