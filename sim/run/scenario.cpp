#include "sim/run/scenario.hpp"

#include <span>

#include "sim/core/output_keys.hpp"
#include "sim/schedules/operator_list.hpp"

namespace overlap {

Json Scenario::config() const {
    RunConfig config;
    config.topology = machine->topology.name() + ".json";
    if (plan == nullptr) {
        config.schedule = schedule->name;
        config.params = to_json(params, schedule->parameters);
    } else {
        config.plan = plan->given;
        config.params = left_out;
    }
    config.workload = has_workload() ? to_json(workload) : left_out;
    config.engine = settings.engine;
    config.seeds = settings.seeds;
    config.cost_models = settings.cost_models;
    config.without = settings.without;
    if (host != nullptr) config.host = host->name;
    config.repeat = repeat;
    config.what_if = given.what_if;
    for (const PairChoice& pair : plan == nullptr ? std::span(pairs) : std::span(pairs).first(0)) {
        const auto& operators = std::get<std::vector<Operator>>(workload.content);
        config.schedules[operators[pair.gemm()].name] = {
            {"schedule", pair.schedule->name}, {"params", to_json(pair.params, pair.schedule->parameters)}};
    }
    return to_json(config);
}

ScheduleParams Scenario::whole_params() const {
    ScheduleParams whole;
    whole.transfers = params.transfers;
    whole.transfers.single_stream = false;
    whole.transfers.alike = serial_alike;
    // Without fusion, the parts of a fused kernel are separate kernels.
    if (!schedule->takes("algorithm")) whole.transfers.prelaunch = false;
    whole.algorithm = params.algorithm;
    return whole;
}

Scenario Scenario::of_all_gpus() const {
    Scenario all = *this;
    all.params.transfers.alike = all.serial_alike = std::nullopt;
    return all;
}

TaskGraph Scenario::device_graph(GraphLimit limit) const {
    if (plan != nullptr) return params.transfers.alike ? *representatives : plan->graph;
    TaskGraph graph = pairs.empty() ? schedule->build(workload, machine->topology, params, limit)
                                    : operators(schedule->in_sequence, limit);
    if (runs_by_data()) graph.run_by_data();
    return graph;
}

TaskGraph Scenario::graph(GraphLimit limit) const {
    TaskGraph graph = as_enqueued(device_graph(limit), schedule->name);
    if (runs_by_data()) graph.run_by_data();
    return graph;
}

TaskGraph Scenario::serial_graph(GraphLimit limit) const {
    const ScheduleEntry& serial = find_schedule("serial");
    return as_enqueued(serial.build(workload, machine->topology, whole_params(), limit), serial.name);
}

TaskGraph Scenario::graph_by_data() const {
    return operators(false);
}

bool Scenario::needs_own_kernel() const {
    return schedule->own_kernel ||
           std::ranges::any_of(pairs, [](const PairChoice& pair) { return pair.schedule->own_kernel; });
}

bool Scenario::runs_by_data() const {
    if (plan != nullptr) return plan->graph.runs_by_data();
    return workload.pair() == nullptr && workload.list_order == ListOrder::data &&
           schedule->takes("algorithm") && !schedule->in_sequence;
}

bool Scenario::runs_in_sequence() const {
    return workload.pair() == nullptr && schedule->in_sequence;
}

TaskGraph Scenario::operators(bool in_sequence, GraphLimit limit) const {
    TaskGraph graph(limit);
    add_operators(workload, machine->topology, schedule->handles(workload) ? params : whole_params(),
                  in_sequence, graph, nullptr, pairs);
    return graph;
}

TaskGraph Scenario::as_enqueued(TaskGraph device, const std::string& by) const {
    if (host != nullptr && host->hardware_queues > 0)
        device.share({host->hardware_queues, host->queue_waits == QueueWaits::end});
    if (!host_calls()) return device;
    const Pair* pair = workload.pair();
    Host at_start = *host;
    if (repeat == Repeat::steady) at_start.starts.skew = Seconds();
    TaskGraph graph =
        enqueued(device, at_start, pair == nullptr ? Seconds() : host->of_operator(by, pair->collective));
    graph.share(device.queues());
    return graph;
}

}  // namespace overlap
