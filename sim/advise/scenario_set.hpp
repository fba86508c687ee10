#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/run/config_folder.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Scenarios that the static heuristic is fitted to, and those that it is judged by. No model is in both.
enum class ScenarioSet { fit, judge };
inline const std::array<std::string, 2> scenario_set_names{"fit", "judge"};

struct AdviceScenario {
    std::string topology;
    std::string family;  ///< the model whose operator it is
    Pair pair;
};

/// Machines that the heuristic is fitted to, and judged on. The last one of the judged is in no fit.
std::span<const std::string> topologies_of(ScenarioSet set);

/// Scenarios of a machine in models/heuristic/fit.csv and judge.csv.
std::size_t usual_count(ScenarioSet set, const std::string& topology);

/// Operators of the set's models, tensor-parallel over all GPUs of the topology (experts: expert-parallel),
/// at 512 to 131,072 tokens, forward, data and weight gradients, bf16 and, where the device has parameters
/// for it, fp8. `count` of them, drawn without replacement in an order that is the same everywhere; fewer
/// where there are fewer. Operators whose dimensions the GPUs do not divide are left out.
std::vector<AdviceScenario> scenarios_of(ScenarioSet set, const std::string& topology,
                                         const ConfigFolder& folder, std::size_t count);

}  // namespace overlap
