#include "sim/sensitivity/sensitivity.hpp"

#include <tbb/parallel_for.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <thread>

#include "sim/core/fields.hpp"
#include "sim/core/ranges.hpp"
#include "sim/run/machine_numbers.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/resolver.hpp"

namespace overlap {
namespace {

bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

std::string mark_of(const Json& parameter) {
    const auto source = parameter.value("source", std::string());
    if (source.starts_with("estimate") || has(source, "(estimate)")) return "estimate";
    if (parameter.contains("standard_error") || has(source, "fitted")) return "fitted";
    if (source.starts_with("measured")) return "measured";
    if (source.starts_with("derived")) return "derived";
    if (has(source, "data sheet") || has(source, "datasheet")) return "data sheet";
    return "published";
}

double changed(const std::string& key, double value, double by) {
    if (!is_count(key)) return value * (1 + by);
    const double step = std::max(1.0, std::round(std::abs(by) * value));
    return value + (by < 0 ? -step : step);
}

/// Runs schedules under changes of the machine.
class Runs {
public:
    Runs(std::span<const CountedRun> runs, const std::vector<std::string>& schedules,
         const ConfigFolder& folder)
        : runs_(runs.begin(), runs.end()),
          schedules_(schedules),
          resolver_(folder, static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))) {}

    /// A run by a schedule; by its own if `schedule` is empty.
    Scenario scenario(const CountedRun& run, const std::string& schedule, const Json& what_if) {
        RunConfig config = run.config;
        if (!schedule.empty()) config.schedule = schedule;
        config.what_if = what_if;
        return resolver_.resolve_for_numbers(config);
    }

    ChangedRuns best(const Json& what_if) {
        ChangedRuns result;
        for (const std::string& schedule : schedules_) {
            Seconds sum;
            for (const CountedRun& run : runs_)
                sum += run.count * makespan_of(scenario(run, schedule, what_if));
            if (!result.best.empty() && sum >= result.makespan) continue;
            result.makespan = sum;
            const RunConfig& own = runs_.front().config;
            result.best = !schedule.empty() ? schedule : own.has_plan() ? "plan" : own.schedule;
        }
        return result;
    }

    ChangedRuns with(const std::string& key, double value) {
        Json what_if = runs_.front().config.what_if;
        what_if[key] = value;
        ChangedRuns runs;
        try {
            runs = best(what_if);
        } catch (const UserError& error) {
            runs.refusal = error.what();
        }
        runs.value = value;
        return runs;
    }

private:
    std::vector<CountedRun> runs_;
    std::vector<std::string> schedules_;
    Resolver resolver_;
};

std::vector<std::string> moved_by(const std::string& key, double value, MachineFiles files) {
    if (!key.starts_with("device.")) return {};
    return mapped(
        change_device(WhatIf({{key, value}}, "sensitivity"), std::array{&files.device, &*files.calibration}),
        &ChangedValue::key);
}

/// Groups of a calibration whose values are constants of a cost model.
constexpr std::array<const char*, 6> fitted_groups{"device.gemm.",         "device.gemm_libraries.",
                                                   "device.attention_",    "device.moe.",
                                                   "device.interference.", "device.variation."};

/// Shares and exponents are constants of a model; counts, clocks, rates, sizes and times are hardware's.
bool is_fit(const std::string& key, const Unit& unit) {
    return std::ranges::any_of(fitted_groups, [&](const char* group) { return key.starts_with(group); }) ||
           (unit.name == "1" && key.starts_with("device.") && !key.ends_with("GHz") && !is_count(key));
}

std::vector<Influence> values_of(const MachineFiles& files, const Scenario& scenario, double by,
                                 const std::string& only) {
    std::vector<Influence> values;
    for (const MachineNumber& number : numbers_of(files, scenario)) {
        if (number.value() == 0) continue;
        const Unit& unit = unit_of(number.key.substr(number.key.rfind('.') + 1));
        Influence one{.key = number.key,
                      .value = number.value(),
                      .unit = unit.name == "1" ? "" : std::string(unit.name),
                      .kind = influence_kinds[is_fit(number.key, unit) ? 1 : 0],
                      .mark = mark_of(number.parameter),
                      .source = number.parameter.value("source", std::string()),
                      .moves = {},
                      .low = {},
                      .high = {}};
        if (!only.empty() && one.kind != only) continue;
        one.moves = moved_by(one.key, changed(one.key, one.value, by), files);
        values.push_back(std::move(one));
    }
    return values;
}

}  // namespace

Sensitivity sensitivity(std::span<const CountedRun> counted, const std::vector<std::string>& schedules,
                        double by, const std::string& only, const ConfigFolder& folder,
                        const std::function<void(std::size_t)>& simulated) {
    const RunConfig& config = counted.front().config;
    Runs runs(counted, schedules.empty() ? std::vector<std::string>(1) : schedules, folder);
    const ChangedRuns now = runs.best(config.what_if);
    const std::string schedule = schedules.empty() ? "" : now.best;
    const Scenario scenario = runs.scenario(counted.front(), schedule, config.what_if);
    Sensitivity result{.config = scenario.config(),
                       .scenario = scenario.workload.name + " on " + scenario.machine->topology.name(),
                       .by = by,
                       .schedules = schedules.empty() ? std::vector{now.best} : schedules,
                       .makespan = now.makespan,
                       .best = now.best};
    const MachineFiles files =
        folder.machine_files(scenario.given.topology, WhatIf(config.what_if, config.origin));
    for (const CountedRun& run : counted)  // what any of the runs can depend on
        for (Influence& one : values_of(files, runs.scenario(run, schedule, run.config.what_if), by, only))
            if (!contains(mapped(result.values, &Influence::key), one.key))
                result.values.push_back(std::move(one));
    RunConfig best = config;
    best.schedule = now.best;
    result.remarks = Remarker(folder).on(best, scenario, makespan_of(scenario),
                                         {"in this makespan", [&](const Json& what_if) {
                                              return runs.best(what_if).makespan == now.makespan;
                                          }});
    const std::size_t all = 2 * result.values.size();
    tbb::parallel_for(std::size_t{0}, all, [&](std::size_t i) {
        Influence& one = result.values[i / 2];
        (i % 2 == 0 ? one.low : one.high) =
            runs.with(one.key, changed(one.key, one.value, i % 2 == 0 ? -by : by));
        simulated(all);
    });
    for (Influence& one : result.values)
        for (ChangedRuns* side : {&one.low, &one.high}) {
            if (!side->refusal.empty()) continue;
            side->change = side->makespan / now.makespan - 1;
            one.effect = std::max(one.effect, std::abs(side->change));
            one.other_best = one.other_best || side->best != now.best;
        }
    std::ranges::stable_sort(result.values, std::ranges::greater(), &Influence::effect);
    return result;
}

}  // namespace overlap
