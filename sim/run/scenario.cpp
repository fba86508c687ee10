#include "sim/run/scenario.hpp"

namespace overlap {

Json Scenario::config() const {
    Json json{{"schema", 1},
              {"topology", machine->topology.name() + ".json"},
              {"schedule", schedule->name},
              {"params", to_json(params, schedule->parameters)},
              {"workload", to_json(workload)},
              {"engine", engine},
              {"seeds", seeds},
              {"cost_models", cost_models},
              {"without", without}};
    if (repeat != Repeat::once) json["repeat"] = repeat_names[static_cast<std::size_t>(repeat)];
    if (!what_if.empty()) json["what_if"] = what_if;
    return json;
}

TaskGraph Scenario::graph() const {
    return schedule->make()->build(workload, machine->topology, params);
}

}  // namespace overlap
