#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/report/gnuplot.hpp"
#include "sim/run/run.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {

/// The runs with one value changed.
struct ChangedRuns {
    double value = 0;
    Seconds makespan;     ///< of the best schedule
    double change = 0;    ///< makespan / that with nothing changed − 1
    std::string best;     ///< that schedule
    std::string refusal;  ///< not empty: why there is no run, for example a value out of range
};

/// Kinds of numbers in a machine's files. hardware: links, memory, units, engines and their latencies. fit: a
/// constant of a cost model, such as a GEMM's tiles and what kernels lose beside each other.
inline const std::array<std::string, 2> influence_kinds{"hardware", "fit"};

/// How the makespan depends on one number of the machine's files.
struct Influence {
    std::string key;  ///< as in a what-if: "device.hbm_GBps"
    double value = 0;
    std::string unit;  ///< as the key ends; empty for shares and counts
    std::string kind;  ///< one of influence_kinds
    std::string mark;  ///< measured, fitted, derived, data sheet, estimate, or published for all others
    std::string source;
    std::vector<std::string> moves;  ///< values that follow it (sim/topology/derived_values.hpp)
    ChangedRuns low, high;
    double effect = 0;  ///< the larger |change of the makespan|, as a share of it
    bool other_best = false;
};

struct Sensitivity {
    Json config;  ///< of the best schedule's run
    std::string scenario;
    double by = 0;
    std::vector<std::string> schedules;
    Seconds makespan;  ///< of the best schedule, nothing changed
    std::string best;
    std::vector<Influence> values = {};  ///< the largest effect first
    Remarks remarks = {};
};

/// A run that counts so many times, such as a layer of a model.
struct CountedRun {
    RunConfig config;
    double count = 1;
};

/// Varies every number of topology, device and calibration that the runs, which are on one machine, can depend on
/// (numbers_of) by the share `by`, down and up, one at a time and with what follows it. Counts change by at least 1.
/// The makespan is the sum of the runs'. Each of `schedules` replaces the schedule of the first run; none: all keep
/// their own. `only`: one of influence_kinds, or empty for both. `simulated` is called, by any thread, for each
/// changed value with their number. Throws UserError if a schedule doesn't run.
Sensitivity sensitivity(std::span<const CountedRun> runs, const std::vector<std::string>& schedules,
                        double by, const std::string& only, const ConfigFolder& folder,
                        const std::function<void(std::size_t)>& simulated);

std::string to_text(const Sensitivity& result, std::size_t most_rows);
Json to_json(const Sensitivity& result);
Json sensitivity_schema();
std::string to_csv(const Sensitivity& result);
/// Bars of the first `most_rows` values: a tornado.
GnuplotScript tornado(const Sensitivity& result, std::size_t most_rows);

}  // namespace overlap
