#pragma once

#include <limits>

#include <boost/container/small_vector.hpp>

namespace overlap {

/// Progress of the thread blocks of a kernel, which share its body equally. They are placed on compute units as
/// these come free: some may run, or be done, while others wait. A compute unit whose thread blocks are done is
/// free again. Thread blocks that are many and short (Blocks::to_the_end) keep each compute unit that they are given
/// busy until the body's end; the body does not wait for compute units that never come free. Of these, one stands here
/// for all that a compute unit runs.
class ThreadBlocks {
public:
    ThreadBlocks() = default;
    ThreadBlocks(int blocks, bool to_the_end)
        : waiting_(blocks), share_(to_the_end ? std::numeric_limits<double>::infinity() : 1.0 / blocks) {}

    /// Number of thread blocks that have no compute unit yet.
    int waiting() const { return waiting_; }
    /// True if no thread block runs.
    bool waits() const { return groups_.empty(); }
    /// Places `blocks` on `units` compute units as evenly as possible. `done`: fraction of the body done now.
    /// `pace`: rate of each of these units, relative to a unit that has all the cache that it needs.
    void place(int units, int blocks, double done, double pace);
    /// Sum of `pace` over the compute units that work.
    double pace() const;
    /// Fraction of the body at which compute units are next done; infinity where none works.
    double next() const;
    /// The body is over at next().
    bool ends_next() const;
    /// The body has reached next(). Returns the number of compute units that are free again.
    int go_on();

private:
    /// Compute units that started together, with the same work.
    struct Group {
        int units;
        double pace;  ///< of each unit
        double left;  ///< fraction of the body that each unit still does
        double time() const { return left / pace; }
    };
    void add(int units, int each, double pace) {
        if (units > 0 && each > 0) groups_.push_back({units, pace, each * share_});
    }
    void advance(double done);
    void work(double time);
    /// Time until the first group is done.
    double least_time() const;

    boost::container::small_vector<Group, 4> groups_;
    int waiting_ = 0;
    double share_ = 0;  ///< fraction of the body that one thread block does; infinity: each works to the end
    double done_ = 0;   ///< fraction of the body done when `Group::left` was updated
};

}  // namespace overlap
