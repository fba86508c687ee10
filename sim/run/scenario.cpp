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
    if (host != nullptr) json["host"] = host->name;
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
    const auto with_calls = [&](GraphSize size) {
        if (host == nullptr) return size;
        return GraphSize{2 * size.tasks, size.edges + 2 * size.tasks};
    };
    if (pairs.empty()) return with_calls(made->size(workload, topology, params));
    return with_calls(size_of_operators(workload, topology,
                                        schedule->handles(workload) ? params : whole_params(),
                                        made->in_sequence(), nullptr, pairs));
}

TaskGraph Scenario::graph() const {
    const Topology& topology = machine->topology;
    const auto made = schedule->make();
    if (!pairs.empty())
        return as_enqueued(
            build_operators(workload, topology, schedule->handles(workload) ? params : whole_params(),
                            made->in_sequence(), nullptr, pairs),
            schedule->name);
    return as_enqueued(made->build(workload, topology, params), schedule->name);
}

TaskGraph Scenario::as_enqueued(TaskGraph device, const std::string& by) const {
    if (host == nullptr) return device;
    const Pair* pair = workload.pair();
    return enqueued(device, *host, pair == nullptr ? Seconds() : host->of_operator(by, pair->collective));
}

}  // namespace overlap
