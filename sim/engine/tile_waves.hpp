#pragma once

#include <boost/container/small_vector.hpp>

namespace overlap {

/// Progress of a persistent GEMM that gets some of its compute units only after its start. Its thread blocks stay
/// on their compute units until no tile is left. Progress is counted in waves: a tile takes one wave.
///
/// Each compute unit that the GEMM has from the start takes one tile, then a second. Tiles are reserved for late
/// compute units, two each: as many as the first compute units leave of their two, and two for a cluster of
/// two. All other tiles go to whichever compute unit is free. A compute unit that finds no tile is free for
/// other tasks.
/// If two waves suffice, late compute units that are no longer needed for reserved tiles begin second tiles that
/// others have not begun, all but one of them (derived: traces/h100_1/spread*.tar.gz, copies behind a GEMM that waits).
/// Hence the last wave frees compute units when it begins, and a body of one or two waves ends its whole
/// duration after its last compute unit has come (traces/h200_4/microbench/residency.jsonl: GEMMs beside kernels that hold 1 to 32
/// units for a quarter to all of their time; residency_drawn.jsonl: 256 tiles end half their time late though
/// 128 units are there from the start). If a late compute unit never comes, its reserved tiles are never done and
/// the body does not end.
///
/// Ignored: clusters of thread blocks need neighbouring compute units.
class TileWaves {
public:
    TileWaves() = default;
    /// `given` compute units at the start, of `most`, with which the body takes `waves` waves.
    TileWaves(int tiles, int waves, int most, int given);

    /// Wave at which compute units next finish a tile; infinity where none works.
    double next() const;
    /// The body is over at next().
    bool ends_next() const;
    /// The body has reached next(). Returns the number of compute units that are free again.
    int go_on();
    /// True if no compute unit works: the body waits for late ones.
    bool waits() const { return groups_.empty(); }
    /// Number of further compute units for which there are tiles.
    int wanted() const;
    /// `units` further compute units come at wave `now`.
    void join(int units, double now);

private:
    /// Compute units that finish their tiles at the same waves.
    struct Group {
        int units;
        double next;  ///< wave at which their tile is done
        int own;      ///< further tiles that each unit has already taken
    };
    /// Second tiles that late compute units may begin.
    int second_tiles_to_give() const;
    void give_second_tiles(int count);
    /// Waves after the next one during which no compute unit can leave or come.
    int waves_to_skip() const;
    void add(int units, double next, int own);

    boost::container::small_vector<Group, 4> groups_;
    int waves_ = 1;
    int each_ = 1;  ///< tiles that a compute unit takes at its start
    int late_ = 0;  ///< compute units that have not come yet
    int kept_ = 0;  ///< tiles reserved for late compute units
    int open_ = 0;  ///< tiles for any compute unit
    bool took_over_ = false;
};

}  // namespace overlap
