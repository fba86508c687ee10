#include "sim/sensitivity/sensitivity.hpp"

#include <tbb/parallel_for.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <thread>

#include "sim/core/fields.hpp"
#include "sim/core/ranges.hpp"
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

/// Keys of a file of the machine that this run can depend on.
class Relevant {
public:
    explicit Relevant(const Scenario& scenario, const Json& calibration)
        : roofline_(contains(scenario.cost_models, "gemm_roofline")) {
        const auto library = calibration.value("gemm_library", std::string("mixed"));
        for (const DType type : types_of_gemms(scenario.workload)) {
            const bool own =
                calibration.contains(Json::json_pointer("/gemm_libraries/" + library + "/" + name_of(type)));
            peaks_.insert("peak_TFLOPS." + name_of(type));
            gemms_.push_back((own ? "gemm_libraries." + library : "gemm") + "." + name_of(type) + ".");
        }
    }

    bool operator()(const std::string& key) const {
        for (const char* part : {"board_power_W", "hbm_capacity_GB", "hbm_peak_GBps", "energy."})
            if (key.starts_with(part)) return false;
        if (key.starts_with("peak_TFLOPS.")) return roofline_ && peaks_.contains(key);
        if (!key.starts_with("gemm")) return true;
        if (key.ends_with(".compute_units")) return false;  // moves with the device's
        return std::ranges::any_of(gemms_, [&](const std::string& gemm) { return key.starts_with(gemm); });
    }

private:
    bool roofline_;
    std::set<std::string> peaks_;
    std::vector<std::string> gemms_;  ///< groups of parameters of the kernels that run, with a dot at the end
};

double changed(const std::string& key, double value, double by) {
    if (!is_count(key)) return value * (1 + by);
    const double step = std::max(1.0, std::round(std::abs(by) * value));
    return value + (by < 0 ? -step : step);
}

/// Runs schedules of one config under changes of its machine.
class Runs {
public:
    Runs(const RunConfig& config, const std::vector<std::string>& schedules, const ConfigFolder& folder)
        : config_(config),
          schedules_(schedules),
          resolver_(folder, static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))) {}

    Scenario scenario(const std::string& schedule, const Json& what_if) {
        RunConfig config = config_;
        config.schedule = schedule;
        config.what_if = what_if;
        return resolver_.resolve_for_numbers(config);
    }

    ChangedRuns best(const Json& what_if) {
        ChangedRuns best;
        for (const std::string& schedule : schedules_) {
            const Seconds makespan = makespan_of(scenario(schedule, what_if));
            if (!best.best.empty() && makespan >= best.makespan) continue;
            best.makespan = makespan;
            best.best = schedule;
        }
        return best;
    }

    ChangedRuns with(const std::string& key, double value) {
        Json what_if = config_.what_if;
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
    RunConfig config_;
    std::vector<std::string> schedules_;
    Resolver resolver_;
};

std::vector<std::string> moved_by(const std::string& key, double value, MachineFiles files) {
    if (!key.starts_with("device.")) return {};
    return mapped(
        change_device(WhatIf({{key, value}}, "sensitivity"), std::array{&files.device, &*files.calibration}),
        &ChangedValue::key);
}

std::vector<Influence> values_of(MachineFiles files, const Scenario& scenario, double by) {
    std::vector<Influence> values;
    const auto add = [&](const std::string& key, const Json& parameter) {
        const auto value = parameter["value"].get<double>();
        if (value == 0) return;
        const Unit& unit = unit_of(key.substr(key.rfind('.') + 1));
        values.push_back({.key = key,
                          .value = value,
                          .unit = unit.name == "1" ? "" : std::string(unit.name),
                          .mark = mark_of(parameter),
                          .source = parameter.value("source", std::string()),
                          .moves = {},
                          .low = {},
                          .high = {}});
    };
    for_each_number(files.topology.json, [&](const std::string& key, const Json& parameter) {
        add("topology." + key, parameter);
    });
    const Relevant relevant(scenario, files.calibration->json);
    for (ConfigFile* file : {&files.device, &*files.calibration})
        for_each_number(file->json, [&](const std::string& key, const Json& parameter) {
            if (relevant(key)) add("device." + key, parameter);
        });
    for (Influence& one : values) one.moves = moved_by(one.key, changed(one.key, one.value, by), files);
    return values;
}

}  // namespace

Sensitivity sensitivity(const RunConfig& config, const std::vector<std::string>& schedules, double by,
                        const ConfigFolder& folder, const std::function<void(std::size_t)>& simulated) {
    Runs runs(config, schedules, folder);
    const ChangedRuns now = runs.best(config.what_if);
    const Scenario scenario = runs.scenario(now.best, config.what_if);
    Sensitivity result{scenario.config(),
                       scenario.workload.name + " on " + scenario.machine->topology.name(),
                       by,
                       schedules,
                       now.makespan,
                       now.best,
                       values_of(folder.machine_files(config.topology, WhatIf(config.what_if, config.origin)),
                                 scenario, by)};
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
