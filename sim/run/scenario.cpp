#include "sim/run/scenario.hpp"

#include "sim/schedules/operator_list.hpp"

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
    if (pairs.empty()) return json;
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    for (const PairChoice& pair : pairs)
        json["schedules"][operators[pair.gemm()].name] = {
            {"schedule", pair.schedule->name}, {"params", to_json(pair.params, pair.schedule->parameters)}};
    return json;
}

ScheduleParams Scenario::whole_params() const {
    ScheduleParams whole;
    whole.transfers = params.transfers;
    whole.transfers.single_stream = false;
    // Without fusion, the parts of a fused kernel are separate kernels.
    if (!schedule->takes("algorithm")) whole.transfers.prelaunch = false;
    whole.algorithm = params.algorithm;
    return whole;
}

GraphSize Scenario::size() const {
    const Topology& topology = machine->topology;
    const auto made = schedule->make();
    if (pairs.empty()) return made->size(workload, topology, params);
    return size_of_operators(workload, topology, schedule->handles(workload) ? params : whole_params(),
                             made->in_sequence(), nullptr, pairs);
}

TaskGraph Scenario::graph() const {
    const Topology& topology = machine->topology;
    const auto made = schedule->make();
    if (!pairs.empty())
        return build_operators(workload, topology, schedule->handles(workload) ? params : whole_params(),
                               made->in_sequence(), nullptr, pairs);
    return made->build(workload, topology, params);
}

}  // namespace overlap
