#pragma once

#include <map>
#include <unordered_map>

#include "sim/report/sweep/sweep_points.hpp"

namespace overlap {

/// One row of points.csv; the values by dimension.
struct SweepRow {
    std::uint64_t point = 0;
    std::vector<std::string> values;
    std::array<double, column::count> figures;
    std::string error;  ///< empty: it has a result
};

/// Stores points by columns while they are read, at most a given number; beyond that, the best of each group.
class SweepStore {
public:
    /// Dimensions in the order of SweepRow::values, still without values.
    SweepStore(std::vector<Dimension> dimensions, std::size_t most);

    void add(const SweepRow& row);
    /// Points in order, with sorted values, without constant dimensions, and with named scenarios.
    SweepPoints finish();
    /// Whether the number of scenarios alone exceeds the limit.
    bool overflown() const { return overflown_; }

private:
    using Key = std::vector<std::uint32_t>;

    void keep(const SweepRow& row, const Key& ids, std::uint32_t scenario, std::uint32_t error);
    void put(std::size_t at, const SweepRow& row, const Key& ids, std::uint32_t scenario,
             std::uint32_t error);
    /// Calls `visit` for each column of the points.
    template <class Visit>
    void for_each_column(Visit visit);
    void move(std::size_t from, std::size_t to);
    void resize(std::size_t rows);
    Key group_of(std::uint32_t scenario, const Key& ids) const;
    bool full() const;
    /// Merges groups into coarser ones until there is room.
    void reduce();
    void sort_by_point();
    void label_dimensions();
    void name_scenarios();

    SweepPoints points_;
    std::size_t most_;
    bool overflown_ = false;
    std::size_t schedule_ = SIZE_MAX, agent_ = SIZE_MAX;               ///< dimensions
    std::vector<std::unordered_map<std::string, std::uint32_t>> ids_;  ///< of values, by dimension
    std::unordered_map<std::string, std::uint32_t> error_ids_;
    std::map<Key, std::uint32_t> scenario_ids_;
    std::map<Key, std::size_t> groups_;  ///< row of each group, once not all points are kept
    std::size_t failures_kept_ = 0;
};

}  // namespace overlap
