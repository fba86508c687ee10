#pragma once

#include <filesystem>
#include <map>

#include "sim/advise/candidates.hpp"
#include "sim/advise/scenario_set.hpp"

namespace overlap {

/// A scenario with the simulated makespan of every candidate that goes with it, by label.
struct SimulatedScenario {
    AdviceScenario scenario;
    std::map<std::string, double> makespan_us;
};

/// Simulations where the machine leaves orders unspecified: fewer than a run's, for speed.
inline constexpr int table_seeds = 5;

/// The scenario as a resolved run of `serial`, from which with_candidate makes the others.
Scenario base_scenario(const AdviceScenario& scenario, const ConfigFolder& folder, std::optional<int> seeds);

/// Simulates every candidate of every scenario, on all cores; the same whatever their number.
std::vector<SimulatedScenario> simulate(std::span<const AdviceScenario> scenarios,
                                        const ConfigFolder& folder);

/// One scenario a line: topology,family,collective,order,shard_dim,m,n,k,dtype, then a column a candidate;
/// empty where it does not go with the scenario. Makespans in microseconds with five digits.
std::string to_csv(std::span<const SimulatedScenario> table);
/// Throws UserError for anything that to_csv would not have written.
std::vector<SimulatedScenario> read_scenario_table(const std::filesystem::path& path);

}  // namespace overlap
