#include <cmath>
#include <limits>
#include <optional>

#include "sim/core/csv_reader.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/sweep/sweep_store.hpp"

namespace overlap {
namespace {

constexpr double no_figure = std::numeric_limits<double>::quiet_NaN();

/// Columns that are no figure of the report and, unless an axis names them, do not identify points. Results
/// differ between the schedules of a scenario.
bool is_other(const std::string& column) {
    static const std::vector<std::string> names{"makespan_p10_us", "makespan_p90_us", "seeds",
                                                "tasks",           "engine",          "wall_ms",
                                                "simulated_gpus",  "params",          "gemm_library"};
    static const std::vector<std::string> results{"losses_us.", "utilisation.", "energy_J.", "steady.",
                                                  "confidence."};
    return contains(names, column) ||
           std::ranges::any_of(results, [&](const std::string& group) { return column.starts_with(group); });
}

/// Whether a column, which has that field of the run config if an axis names it, describes a schedule.
bool is_choice_column(const std::string& column, const std::string& field) {
    static const std::vector<std::string> names{"schedule", "schedules", "chunks",
                                                "agent",    "transfer",  "copy_cus"};
    return field.starts_with("params.") || contains(names, column);
}

void require_file(const std::filesystem::path& folder, const std::string& name) {
    std::error_code ignored;
    if (!std::filesystem::exists(folder, ignored))
        throw UserError(folder.string() + ": no such folder (made by sim sweep FILE --out DIR)");
    if (!std::filesystem::exists(folder / name, ignored))
        throw UserError(folder.string() + ": is not the folder of a sweep: has no " + name +
                        " (made by sim sweep FILE --out DIR)");
}

SweepInfo read_info(const std::filesystem::path& path) {
    const Json json = read_json_file(path);
    ConfigObject file(json, path.string());
    file.integer("schema", 1, 1);
    SweepInfo info;
    info.name = file.text("name");
    if (file.has("description")) info.description = file.text("description");
    info.version = file.text("version");
    info.combinations = static_cast<std::uint64_t>(file.integer("points", 0, INT64_MAX));
    if (file.has("base")) {
        file.object("base");
        info.base = file.raw("base");
    }
    for (ConfigObject& axis : file.objects("axes")) {
        info.axes.push_back({axis.texts("fields"), axis.raw("values")});
        if (info.axes.back().fields.empty()) axis.fail("fields", "is empty, expected a field or more");
        if (!info.axes.back().values.is_array())
            axis.fail("values", "is " + shown(info.axes.back().values) + ", expected an array");
    }
    if (file.has("where")) info.constraints = file.texts("where");
    return info;
}

/// Positions of all columns in a row, from the header.
class Columns {
public:
    Columns(const CsvRow& header, const SweepInfo& info, const std::string& file)
        : file_(file), names_(header) {
        point_ = require("point");
        error_ = require("error");
        require("schedule");
        for (std::size_t i = 0; i < column::count; ++i)
            if (i != column::makespan_error || column_of(sweep_metrics[i].name))
                metrics_[i] = require(sweep_metrics[i].name);
        std::vector<std::string> swept(header.size());  // the field
        for (const SweepInfo::Axis& axis : info.axes)
            for (const std::string& field : axis.fields)
                if (const auto at = column_of(field)) swept[*at] = field;
        const bool sweeps_changes =
            std::ranges::any_of(header, [](const std::string& name) { return name.starts_with("what_if."); });
        for (std::size_t i = 0; i < header.size(); ++i) {
            if (header[i] == "what_if" && sweeps_changes) continue;  // each change has its own column
            const auto is = [&](std::optional<std::size_t> at) { return at == i; };
            if (is(point_) || is(error_) || std::ranges::any_of(metrics_, is)) continue;
            if (is_other(header[i]) && swept[i].empty()) continue;
            at_.push_back(i);
            dimensions_.push_back(
                {header[i], header[i], is_choice_column(header[i], swept[i]), !swept[i].empty(), {}, {}});
        }
    }

    const std::vector<Dimension>& dimensions() const { return dimensions_; }

    void read(const CsvRow& cells, std::size_t line, SweepRow& row) const {
        const std::string where = file_ + ":" + std::to_string(line) + ": ";
        if (cells.size() != names_.size())
            throw UserError(where + "has " + std::to_string(cells.size()) + " cells, expected " +
                            std::to_string(names_.size()));
        row.point = static_cast<std::uint64_t>(number(cells, point_, where, true));
        row.error = text_of_csv_cell(cells[error_]);
        row.values.clear();
        for (const std::size_t at : at_) row.values.push_back(text_of_csv_cell(cells[at]));
        for (std::size_t i = 0; i < column::count; ++i)
            row.figures[i] =
                metrics_[i] ? number(cells, *metrics_[i], where, i == column::makespan && row.error.empty())
                            : no_figure;
        if (!row.error.empty()) row.figures.fill(no_figure);
    }

    /// Empty in folders without the column.
    std::string text(const CsvRow& cells, const std::string& name) const {
        const auto at = column_of(name);
        return at ? text_of_csv_cell(cells[*at]) : "";
    }

private:
    std::size_t require(const std::string& name) const {
        return known_place(name, names_, file_ + ":1: column '" + name + "' is missing");
    }
    /// Column of a swept field: its own, or that of its last part (params.chunks: chunks).
    std::optional<std::size_t> column_of(const std::string& field) const {
        for (const std::string& name : {field, field.substr(field.rfind('.') + 1)}) {
            if (contains(names_, name)) return place_of(names_, name);
        }
        return std::nullopt;
    }
    double number(const CsvRow& cells, std::size_t at, const std::string& where, bool must_be) const {
        const std::string& cell = cells[at];
        if (cell.empty() && !must_be) return no_figure;
        const auto value = parsed<double>(cell);
        if (!value || !std::isfinite(*value) || (at == point_ && *value < 0))
            throw UserError(where + names_[at] + " is " + in_quotes(cell) + ", expected a number");
        return *value;
    }

    std::string file_;
    CsvRow names_;
    std::size_t point_ = 0, error_ = 0;
    std::array<std::optional<std::size_t>, column::count> metrics_{};
    std::vector<std::size_t> at_;  ///< by dimension
    std::vector<Dimension> dimensions_;
};

}  // namespace

SweepPoints read_sweep(const std::filesystem::path& folder, std::size_t most) {
    require_file(folder, "sweep.json");
    require_file(folder, "points.csv");
    SweepInfo info = read_info(folder / "sweep.json");
    const std::filesystem::path path = folder / "points.csv";
    std::optional<Columns> columns;
    std::optional<SweepStore> store;
    SweepRow row;
    std::size_t last_line = 0;
    std::map<std::string, std::size_t> bases;
    std::set<std::string> libraries;
    const bool whole = read_csv(path, [&](const CsvRow& cells, std::size_t line) {
        last_line = line;
        if (!columns) {
            columns.emplace(cells, info, path.string());
            store.emplace(columns->dimensions(), most);
            return;
        }
        columns->read(cells, line, row);
        store->add(row);
        if (!row.error.empty()) return;
        if (const std::string basis = columns->text(cells, "confidence.basis"); !basis.empty())
            ++bases[basis];
        if (const std::string library = columns->text(cells, "gemm_library"); !library.empty())
            libraries.insert(library);
        if (store->overflown())
            throw UserError(path.string() + ": has more than " + std::to_string(most) +
                            " scenarios, the most that a report can show");
    });
    if (!whole)
        throw UserError(path.string() + ":" + std::to_string(last_line) +
                        ": is cut off (the line has no end)");
    if (!columns) throw UserError(path.string() + ":1: has no header line");
    SweepPoints points = store->finish();
    if (points.failed == points.read)
        throw UserError(path.string() + ": no point has a result" +
                        (points.read == 0 ? std::string(" (it has no rows)")
                                          : " (" + std::to_string(points.failed) + " failed; the first: " +
                                                points.errors[points.error[0]] + ")"));
    points.info = std::move(info);
    points.bases = std::move(bases);
    points.gemm_libraries = std::move(libraries);
    return points;
}

}  // namespace overlap
