#include "sim/advise/scenario_table.hpp"

#include <tbb/parallel_for.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>

#include "sim/core/csv_table.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/resolver.hpp"

namespace overlap {
namespace {

const std::array<std::string, 9> leading{"topology", "family", "collective", "order", "shard_dim",
                                         "m",        "n",      "k",          "dtype"};

std::string five_digits(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.5g", value);
    return text.data();
}

double microseconds_in(const std::string& cell, const std::string& where) {
    const auto value = parsed<double>(cell);
    if (!value || !std::isfinite(*value) || *value <= 0)
        throw UserError(where + ": " + in_quotes(cell) + " is no makespan");
    return *value;
}

}  // namespace

Scenario base_scenario(const AdviceScenario& scenario, const ConfigFolder& folder, std::optional<int> seeds) {
    RunConfig config;
    config.origin = "scenario of " + scenario.family;
    config.topology = scenario.topology;
    config.schedule = "serial";
    config.seeds = seeds;
    config.workload = to_json(Workload{scenario.family, "", scenario.pair});
    return resolve(config, folder);
}

std::vector<SimulatedScenario> simulate(std::span<const AdviceScenario> scenarios, const ConfigFolder& folder,
                                        const std::function<void()>& simulated) {
    std::vector<SimulatedScenario> table(scenarios.size());
    tbb::parallel_for(std::size_t{0}, scenarios.size(), [&](std::size_t i) {
        const Scenario base = base_scenario(scenarios[i], folder, table_seeds);
        table[i].scenario = scenarios[i];
        for (const Candidate& candidate : candidates_for(base.workload, base.machine->topology)) {
            try {
                const Seconds time = makespan_of(with_candidate(base, candidate));
                table[i].makespan_us[candidate.label()] = std::stod(five_digits(to_microseconds(time)));
            } catch (const UserError&) {
                // More chunks than rows: no candidate for this scenario.
            }
        }
        if (simulated) simulated();
    });
    return table;
}

std::string to_csv(std::span<const SimulatedScenario> table) {
    std::set<std::string> labels;
    for (const SimulatedScenario& row : table)
        for (const auto& [label, time] : row.makespan_us) labels.insert(label);
    std::string text;
    for (const std::string& name : leading) text += name + ",";
    for (const std::string& label : labels) text += label + ",";
    text.back() = '\n';
    for (const auto& [scenario, times] : table) {
        const Pair& pair = scenario.pair;
        text += scenario.topology + "," + scenario.family + "," + name_of(pair.collective) + "," +
                order_names[static_cast<std::size_t>(pair.order)] + "," +
                shard_dim_names[static_cast<std::size_t>(pair.shard_dim)] + "," +
                std::to_string(pair.gemm.m) + "," + std::to_string(pair.gemm.n) + "," +
                std::to_string(pair.gemm.k) + "," + name_of(pair.gemm.dtype) + ",";
        for (const std::string& label : labels) {
            const auto time = times.find(label);
            text += (time == times.end() ? "" : five_digits(time->second)) + ",";
        }
        text.back() = '\n';
    }
    return text;
}

std::vector<SimulatedScenario> read_scenario_table(const std::filesystem::path& path) {
    const CsvTable csv = read_csv_table(path);
    for (const std::string& name : leading) csv.require(name);
    std::vector<std::string> labels;
    for (const std::string& name : csv.columns())
        if (!contains(leading, name)) {
            labels.push_back(parse_candidate(name, path.string()).label());
            if (labels.back() != name)
                throw UserError(path.string() + ":1: column " + in_quotes(name) + ", expected " +
                                in_quotes(labels.back()));
        }
    std::vector<SimulatedScenario> table;
    for (std::size_t row = 0; row < csv.rows(); ++row) {
        const std::string where = csv.where(row);
        const auto choice = [&](const std::string& column, const auto& names) {
            const std::string& name = csv.cell(row, column);
            return known_place(name, names, where + ": " + column + ": " + in_quotes(name) + " is not known");
        };
        SimulatedScenario one;
        one.scenario.topology = csv.cell(row, "topology");
        one.scenario.family = csv.cell(row, "family");
        Pair& pair = one.scenario.pair;
        pair.collective = static_cast<CollectiveKind>(choice("collective", collective_names));
        pair.order = static_cast<Order>(choice("order", order_names));
        pair.shard_dim = static_cast<ShardDim>(choice("shard_dim", shard_dim_names));
        pair.gemm = {csv.integer(row, "m"), csv.integer(row, "n"), csv.integer(row, "k"),
                     static_cast<DType>(choice("dtype", dtype_names))};
        for (const std::string& label : labels)
            if (const std::string& cell = csv.cell(row, label); !cell.empty())
                one.makespan_us[label] = microseconds_in(cell, where + ": " + label);
        if (one.makespan_us.empty()) throw UserError(where + ": has no makespan");
        table.push_back(std::move(one));
    }
    return table;
}

}  // namespace overlap
