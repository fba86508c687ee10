#pragma once

#include <vector>

#include "models/gemm_tiling.hpp"
#include "sim/calibrate/measurements/gemm_table.hpp"

namespace overlap {

/// The few tiles that can be the fastest of a GEMM near a point of the parameters. A fit that finds slopes by finite
/// differences prices each GEMM many times near one point.
class GemmContenders {
public:
    /// `at`: the point. `step`: how far the logarithm of one parameter will be moved from there.
    GemmContenders(const GemmMeasurement& row, const GemmParameters& at, double step);

    /// `near`, which lies at most a step from the point, without the tiles that cannot be the fastest.
    GemmParameters among(const GemmParameters& near) const;

private:
    struct Tile {
        std::size_t index;  ///< among the listed tiles, or their number
        double rows, columns;
    };
    std::vector<Tile> tiles_;
};

}  // namespace overlap
