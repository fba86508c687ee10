#include "sim/calibrate/measurements/gemm_table.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/core/csv_table.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

/// Number (1, 2, …) of the text in a column; 0 if no text matches or no column is given.
int number_of(const RowMarks& marks, const CsvTable& table, std::size_t row) {
    if (marks.texts.empty()) return 0;
    const std::size_t place = place_of(marks.texts, table.cell(row, marks.column));
    return place == marks.texts.size() ? 0 : static_cast<int>(place) + 1;
}

/// What each of a run's GEMMs has of the pause behind the run; `b`: bytes of B.
Seconds gap_of(const RunGap& gap, Bytes b) {
    constexpr double most_copies = 5;  // collector/trtllm/collect_gemm.py, as the recipes' run_gap says
    if (gap.pause.si() == 0) return {};
    return gap.pause / std::clamp(std::ceil(gap.cache / b), 1.0, most_copies);
}

void require_columns(const CsvTable& table, const GemmTableFilter& filter) {
    for (const std::string& column : filter.shape_columns) table.require(column);
    table.require(filter.time_column);
    if (!filter.units_column.empty()) table.require(filter.units_column);
    for (const auto& [column, text] : filter.where) table.require(column);
    for (const RowMarks* marks : {&filter.campaigns, &filter.libraries})
        if (!marks->texts.empty()) table.require(marks->column);
}

}  // namespace

std::vector<GemmMeasurement> read_gemm_table(const std::filesystem::path& path,
                                             const GemmTableFilter& filter) {
    const CsvTable table = read_csv_table(path);
    require_columns(table, filter);
    struct Timed {
        double us;
        int campaign, by_library;
    };
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, std::vector<Timed>> timed;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        if (!std::ranges::all_of(filter.where,
                                 [&](const auto& of) { return table.cell(row, of.first) == of.second; }))
            continue;
        const auto& [rows, columns, depth] = filter.shape_columns;
        const std::tuple shape(table.integer(row, columns), table.integer(row, depth),
                               table.integer(row, rows),
                               filter.units_column.empty() ? 0 : table.integer(row, filter.units_column));
        const double us = table.number(row, filter.time_column) * filter.us;
        const auto aligned = [&](std::int64_t size) { return size % filter.alignment == 0; };
        if (microseconds(us) < filter.shortest || !aligned(std::get<0>(shape)) ||
            !aligned(std::get<1>(shape)))
            continue;
        const int campaign =
            filter.campaigns.texts.empty() ? filter.campaign : number_of(filter.campaigns, table, row);
        timed[shape].push_back({us, campaign, number_of(filter.libraries, table, row)});
    }
    std::vector<GemmMeasurement> rows;
    for (auto& [shape, equal] : timed) {
        const auto& [columns, depth, height, mask] = shape;
        std::ranges::stable_sort(equal, {}, &Timed::us);
        const Timed& kept = equal[filter.median ? equal.size() / 2 : 0];
        const Bytes b = matrix_size(depth, columns, filter.dtype);
        rows.push_back({.shape = {height, columns, depth, filter.dtype, false},
                        .time = microseconds(kept.us),
                        .weight = filter.weight,
                        .busy = {},
                        .campaign = kept.campaign,
                        .by_library = kept.by_library,
                        .units = static_cast<int>(mask),
                        .warm = b < filter.warm_below,
                        .gap = gap_of(filter.run_gap, b)});
    }
    return rows;
}

}  // namespace overlap
