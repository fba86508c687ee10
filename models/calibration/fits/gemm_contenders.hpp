#pragma once

#include <vector>

#include "models/calibration/measurements/gemm_table.hpp"
#include "models/gemm_model.hpp"

namespace overlap {

/// The few tiles that can be a GEMM's fastest near a point of the parameters: slopes of a fit ask for many times there.
class GemmContenders {
public:
    /// At these parameters. `reach`: a tile that takes longer than the fastest by more than this share of it is left out.
    GemmContenders(const GemmMeasurement& row, const overlap_advice::GemmConstants& at, double reach);

    /// Parameters near the point, with these tiles only. They choose as all tiles do.
    overlap_advice::GemmConstants among(const overlap_advice::GemmConstants& near) const;

private:
    struct Tile {
        std::size_t index;  ///< among the listed tiles, or their number
        double rows, columns;
    };
    std::vector<Tile> tiles_;
};

}  // namespace overlap
