#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/run/config_folder.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Scenarios for fitting the static heuristic, and for judging it. No model is in both.
enum class ScenarioSet { fit, judge };
inline const std::array<std::string, 2> scenario_set_names{"fit", "judge"};

struct AdviceScenario {
    std::string topology;
    std::string family;  ///< the model
    Pair pair;
};

struct ScenarioCount {
    std::string topology;
    std::size_t scenarios = 0;
};
/// Scenarios of each machine in models/heuristic/fit.csv and judge.csv: configs/advice_scenarios.json. Throws UserError.
std::vector<ScenarioCount> scenario_counts(ScenarioSet set, const ConfigFolder& folder);
Json advice_scenarios_schema();

/// Operators of the set's models: tensor-parallel over all GPUs of the topology (experts: expert-parallel),
/// 512 to 131,072 tokens, forward, data and weight gradients, bf16 and, if the device has parameters for it,
/// fp8. Draws `count` of them without replacement, in the same order everywhere; all if there are fewer.
/// Operators whose dimensions are not divisible by the GPUs are left out.
std::vector<AdviceScenario> scenarios_of(ScenarioSet set, const std::string& topology,
                                         const ConfigFolder& folder, std::size_t count);

}  // namespace overlap
