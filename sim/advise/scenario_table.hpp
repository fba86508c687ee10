#pragma once

#include <filesystem>
#include <functional>
#include <map>

#include "sim/advise/candidates.hpp"
#include "sim/advise/scenario_set.hpp"

namespace overlap {

/// A scenario with the simulated makespan of every candidate that can run it, by label.
struct SimulatedScenario {
    AdviceScenario scenario;
    std::map<std::string, double> makespan_us;
};

/// Seeds for machines that leave orders unspecified: fewer than in a run, for speed.
inline constexpr int table_seeds = 5;

/// The scenario as a resolved run of `serial`; with_candidate makes the other runs from it.
Scenario base_scenario(const AdviceScenario& scenario, const ConfigFolder& folder, std::optional<int> seeds);

/// Simulates every candidate of every scenario on all cores. The result does not depend on their number.
/// `simulated` is called, by any thread, for each scenario.
std::vector<SimulatedScenario> simulate(std::span<const AdviceScenario> scenarios, const ConfigFolder& folder,
                                        const std::function<void()>& simulated = nullptr);

/// One scenario a line: topology,family,collective,order,shard_dim,m,n,k,dtype, then one column for each
/// candidate, empty if the candidate can't run. Makespans in microseconds with five digits.
std::string to_csv(std::span<const SimulatedScenario> table);
/// Throws UserError for anything that to_csv does not write.
std::vector<SimulatedScenario> read_scenario_table(const std::filesystem::path& path);

}  // namespace overlap
