#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// The axes and the base of a sweep, from its sweep.json.
struct SweepInfo {
    std::string name, description, version;  ///< version: of the program that ran it
    std::uint64_t combinations = 0;          ///< of all axes, before constraints
    Json base;                               ///< fields of the run config that all points share
    struct Axis {
        std::vector<std::string> fields;  ///< several fields change together
        Json values;                      ///< one row a value, with one cell a field
    };
    std::vector<Axis> axes;
    std::vector<std::string> constraints;
};

/// A figure of every point: a column of points.csv, shown as value · scale in `unit`.
struct Metric {
    enum class Better { less, more, neither };
    const char* name;
    const char* label;
    const char* unit;
    double scale;
    Better better;
};
/// In the order of SweepPoints::metrics; the losses lie beside each other, after the ideal time.
namespace column {
enum Id : std::size_t {
    makespan,
    speedup,
    overlap_efficiency,
    exposed_comm,
    serial,
    gemm_alone,
    comm_alone,
    ideal,
    first_loss,
    last_loss = first_loss + 5,
    cu_used,
    hbm_used,
    link_used,
    dma_used,
    comm_cus,
    staging,
    makespan_error,  ///< none where a part of the prices was never measured, and in older folders
    count
};
}  // namespace column
using MetricId = column::Id;
extern const std::array<Metric, column::count> sweep_metrics;
/// "makespan [us]".
std::string axis_label(const Metric& metric);
/// Throws UserError with the nearest name.
MetricId find_metric(const std::string& name);

/// A column that identifies points; values in natural order: none, numbers by size, g2 before g10.
struct Dimension {
    std::string name;
    std::string label;                ///< as many trailing parts of the name as make it unique
    bool choice = false;              ///< describes a schedule or its parameters; otherwise the scenario
    bool swept = false;               ///< named by an axis
    std::vector<std::string> values;  ///< empty if a point has no value (chunks of `serial`)
    std::vector<std::uint32_t> at;    ///< by row

    const std::string& value(std::size_t row) const { return values[at[row]]; }
    bool is_what_if() const { return name.starts_with("what_if."); }
    /// `values` for people: "unchanged" or "(none)" instead of nothing.
    std::vector<std::string> shown() const;
};

/// Which points are kept: all, or the best of each group if there are too many to show.
enum class Kept { all, best_of_schedule_and_agent, best_of_schedule, best_of_scenario };

/// The points of a sweep by columns; rows are in file order. A failed point has no scenario. Its figures are
/// NaN, like figures that do not apply.
struct SweepPoints {
    static constexpr std::uint32_t none = UINT32_MAX;

    SweepInfo info;
    std::size_t read = 0, failed = 0;
    Kept kept = Kept::all;
    std::vector<std::uint64_t> point;   ///< its number in the sweep
    std::vector<Dimension> dimensions;  ///< those that vary
    std::vector<std::pair<std::string, std::string>> constants;
    std::array<std::vector<double>, column::count> metrics;
    std::vector<std::string> scenarios;   ///< scenarios, named by the varying dimensions
    std::vector<std::uint32_t> scenario;  ///< by row
    std::vector<std::string> errors;      ///< reasons
    std::vector<std::uint32_t> error;     ///< by row
    /// The weakest basis of a point's prices (Confidence::basis), and for how many points that read has seen
    std::map<std::string, std::size_t> bases;
    std::set<std::string> gemm_libraries;  ///< whose GEMMs the prices describe

    std::size_t rows() const { return point.size(); }
    bool ok(std::size_t row) const { return scenario[row] != none; }
    double figure(std::size_t row, MetricId metric) const { return metrics[metric][row]; }
    /// None if no column of that name varies.
    const Dimension* dimension(const std::string& name) const;
};

/// Up to this many points are all shown.
inline constexpr std::size_t most_points_shown = 200'000;
/// Number of failed points that are kept if there are more points than that.
inline constexpr std::size_t most_failures_shown = 1'000;

/// Reads a folder written by `sim sweep`. Memory is limited to `most` points, whatever the file size:
/// if there are more, the best of each (scenario, schedule, agent) are kept, or of coarser groups.
/// Throws UserError if it is no such folder, a file is damaged, no point has a result, or there are
/// more scenarios than `most`.
SweepPoints read_sweep(const std::filesystem::path& folder, std::size_t most = most_points_shown);

}  // namespace overlap
