#include "models/calibration/measurements/gemm_table.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <tuple>

#include "sim/core/archive.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> cells;
    std::size_t begin = 0;
    while (true) {
        const std::size_t end = line.find(',', begin);
        cells.push_back(line.substr(begin, end - begin));
        if (end == std::string::npos) break;
        begin = end + 1;
    }
    if (!cells.back().empty() && cells.back().back() == '\r') cells.back().pop_back();
    return cells;
}

/// A table that is being read; knows the current line for error messages.
struct Table {
    std::string file;
    std::vector<std::string> columns;
    std::size_t line = 1;

    [[noreturn]] void fail(const std::string& message) const {
        throw UserError(one_line(file + ":" + std::to_string(line) + ": " + message));
    }

    std::size_t column(const std::string& name) const {
        for (std::size_t i = 0; i < columns.size(); ++i)
            if (columns[i] == name) return i;
        fail("there is no column '" + name + "'" + suggestion(name, columns));
    }

    double positive_number(const std::vector<std::string>& cells, std::size_t index) const {
        const std::string& text = cells[index];
        double value = 0;
        const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || stop != text.data() + text.size() || !(value > 0) || value > 1e15)
            fail(columns[index] + " is '" + text + "', expected a positive number");
        return value;
    }

    std::int64_t positive_integer(const std::vector<std::string>& cells, std::size_t index) const {
        const double value = positive_number(cells, index);
        if (value != static_cast<double>(static_cast<std::int64_t>(value)))
            fail(columns[index] + " is '" + cells[index] + "', expected a whole number");
        return static_cast<std::int64_t>(value);
    }
};

/// Number (1, 2, …) of the text in a column; 0 if no text matches or no column is given.
class Marks {
public:
    Marks(const Table& table, const std::string& column, const std::vector<std::string>& texts)
        : column_(texts.empty() ? 0 : table.column(column)), texts_(texts) {}

    int of(const std::vector<std::string>& cells) const {
        const auto found = std::find(texts_.begin(), texts_.end(), cells[column_]);
        return found == texts_.end() ? 0 : static_cast<int>(found - texts_.begin()) + 1;
    }

private:
    std::size_t column_;
    const std::vector<std::string>& texts_;
};

/// What each of a run's GEMMs has of the pause behind the run; `b`: bytes of B.
Seconds gap_of(const GemmTableFilter& filter, Bytes b) {
    constexpr double most_copies = 5;  // collector/trtllm/collect_gemm.py, as the recipes' run_gap says
    if (filter.run_gap.si() == 0) return {};
    return filter.run_gap / std::clamp(std::ceil(filter.run_cache / b), 1.0, most_copies);
}

}  // namespace

std::vector<GemmMeasurement> read_gemm_table(const std::filesystem::path& path,
                                             const GemmTableFilter& filter) {
    std::istringstream in(decompressed(path, "a table of GEMMs"));
    Table table{.file = path.string(), .columns = {}, .line = 1};
    std::string line;
    if (!std::getline(in, line)) table.fail("is empty, expected a header line");
    table.columns = split(line);
    const std::size_t m = table.column(filter.shape_columns[0]), n = table.column(filter.shape_columns[1]),
                      k = table.column(filter.shape_columns[2]);
    const std::size_t time = table.column(filter.time_column);
    std::map<std::size_t, std::string> where;
    for (const auto& [name, text] : filter.where) where[table.column(name)] = text;

    const Marks campaigns(table, filter.campaign_column, filter.campaigns);
    const Marks libraries(table, filter.column_of_libraries, filter.libraries);

    struct Timed {
        double us;
        int campaign, by_library;
    };
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, std::vector<Timed>> timed;
    const std::size_t units = filter.units_column.empty() ? 0 : table.column(filter.units_column);
    while (std::getline(in, line)) {
        ++table.line;
        if (line.empty()) continue;
        const std::vector<std::string> cells = split(line);
        if (cells.size() != table.columns.size())
            table.fail("has " + std::to_string(cells.size()) + " cells, the header has " +
                       std::to_string(table.columns.size()));
        bool wanted = true;
        for (const auto& [index, text] : where) wanted = wanted && cells[index] == text;
        if (!wanted) continue;
        const auto shape = std::tuple(table.positive_integer(cells, n), table.positive_integer(cells, k),
                                      table.positive_integer(cells, m),
                                      filter.units_column.empty() ? 0 : table.positive_integer(cells, units));
        const double us = table.positive_number(cells, time) * filter.us;
        const auto aligned = [&](std::int64_t size) { return size % filter.alignment == 0; };
        if (microseconds(us) < filter.shortest || !aligned(std::get<0>(shape)) ||
            !aligned(std::get<1>(shape)))
            continue;
        const int campaign = filter.campaigns.empty() ? filter.campaign : campaigns.of(cells);
        timed[shape].push_back({us, campaign, libraries.of(cells)});
    }
    std::vector<GemmMeasurement> rows;
    for (auto& [shape, equal] : timed) {
        const auto& [columns, depth, height, mask] = shape;
        std::stable_sort(equal.begin(), equal.end(),
                         [](const Timed& a, const Timed& b) { return a.us < b.us; });
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
                        .gap = gap_of(filter, b)});
    }
    return rows;
}

}  // namespace overlap
