#pragma once

#include <boost/container/small_vector.hpp>

namespace overlap {

/// How far a body of equal tiles is, on units that need not all be there from its start: a
/// library GEMM whose thread blocks stay until no tile is left. Progress is counted in waves: a tile takes
/// one.
///
/// Units that are there from the start take a tile each, then a second; what is over of these, and two tiles
/// of a cluster of two, is kept for units that come late, two tiles each; the others are dealt one by one. A
/// unit that finds no tile leaves.
/// So a last wave leaves units as it begins, and a body of one or two waves ends its own time after the last
/// of its units has come (traces/h200_4/microbench/residency.jsonl: GEMMs beside kernels that hold 1 to 32
/// units for a quarter to all of their time; residency_drawn.jsonl: 256 tiles end half their time late though
/// 128 units are there from the start). Where units that keep tiles waiting never come, it does not end.
///
/// Left out: clusters of thread blocks that need neighbouring units.
class TileWaves {
public:
    TileWaves() = default;
    /// `given` units at the start, of `most`, with which it is `waves` waves long.
    TileWaves(int tiles, int waves, int most, int given);

    /// The wave at which units are next done with a tile; infinity where none is at work.
    double next() const;
    /// The body is over at `next`.
    bool ends_next() const;
    /// At `next`: returns how many units leave.
    int go_on();
    /// It waits for units that are late, and none is at work.
    bool waits() const { return groups_.empty(); }
    /// How many more units it has tiles for.
    int wanted() const;
    /// More units come at wave `now`.
    void join(int units, double now);

private:
    /// Units in step.
    struct Group {
        int units;
        double next;  ///< the wave at which their tile is done
        int own;      ///< tiles that each of them has after it
    };
    /// Waves after the next one before any unit can leave or come.
    int waves_to_skip() const;
    void add(int units, double next, int own) {
        if (units > 0) groups_.push_back({units, next, own});
    }

    boost::container::small_vector<Group, 4> groups_;
    int each_ = 1;  ///< tiles that a unit takes as it starts
    int late_ = 0;  ///< units that have not come
    int kept_ = 0;  ///< tiles for them
    int open_ = 0;  ///< tiles for whoever comes
};

}  // namespace overlap
