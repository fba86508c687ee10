#include "models/calibration/fits/gemm_contenders.hpp"

namespace overlap {

namespace tiles = overlap_advice::gemm_detail;

namespace {

/// A step changes no tile's time by more than its own share of that time, so two tiles that are two steps apart keep their
/// order. The rest is margin.
constexpr double reach_in_steps = 5;

}  // namespace

GemmContenders::GemmContenders(const GemmMeasurement& row, const overlap_advice::GemmConstants& at,
                               double step) {
    const tiles::Problem problem = tiles::describe(to_work(row.shape, row.warm), at);
    tiles::Choice all(problem, at);
    tiles::each_tile(problem, at,
                     [&](const overlap_advice::GemmTile& tile) { all.consider(tile, tiles::most_splits); });
    const double longest = all.time() * (1 + reach_in_steps * step);
    std::size_t index = 0;
    tiles::each_tile(problem, at, [&](const overlap_advice::GemmTile& tile) {
        tiles::Choice one(problem, at, longest);
        one.consider(tile, tiles::most_splits);
        if (one.time() < longest) tiles_.push_back({std::min(index, at.tile_count), tile.rows, tile.columns});
        ++index;
    });
}

overlap_advice::GemmConstants GemmContenders::among(const overlap_advice::GemmConstants& near) const {
    if (tiles_.size() > overlap_advice::most_gemm_tiles) return near;
    overlap_advice::GemmConstants few = near;
    few.row_step = 0;
    few.tile_count = 0;
    for (const Tile& tile : tiles_)
        few.tiles[few.tile_count++] = {tile.rows, tile.columns,
                                       tile.index < near.tile_count
                                           ? near.tiles[tile.index].efficiency
                                           : tiles::other_efficiency(near, tile.rows, tile.columns)};
    return few;
}

}  // namespace overlap
