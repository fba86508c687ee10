#include "sim/calibrate/fits/gemm_contenders.hpp"

namespace overlap {

namespace tiles = gemm_detail;

namespace {

/// A step changes no tile's time by more than its own share of that time, so two tiles that are two steps apart keep
/// their order. The rest is margin.
constexpr double reach_in_steps = 5;

}  // namespace

GemmContenders::GemmContenders(const GemmMeasurement& row, const GemmParameters& at, double step) {
    const tiles::Problem problem = tiles::describe(row.shape, at, row.warm);
    tiles::Choice all(problem, at);
    tiles::each_tile(problem, at, [&](const tiles::Tile& tile) { all.consider(tile, tiles::most_splits); });
    const double longest = all.time() * (1 + reach_in_steps * step);
    std::size_t index = 0;
    tiles::each_tile(problem, at, [&](const tiles::Tile& tile) {
        tiles::Choice one(problem, at, longest);
        one.consider(tile, tiles::most_splits);
        if (one.time() < longest)
            tiles_.push_back({std::min(index, at.tiles.size()), tile.rows, tile.columns});
        ++index;
    });
}

GemmParameters GemmContenders::among(const GemmParameters& near) const {
    GemmParameters few = near;
    few.row_step = 0;
    few.tiles.clear();
    for (const Tile& tile : tiles_)
        few.tiles.push_back({static_cast<std::int64_t>(tile.rows), static_cast<std::int64_t>(tile.columns),
                             tile.index < near.tiles.size()
                                 ? near.tiles[tile.index].efficiency
                                 : tiles::other_efficiency(near, tile.rows, tile.columns)});
    return few;
}

}  // namespace overlap
