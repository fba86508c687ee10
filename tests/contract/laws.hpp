#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/pricing/effects.hpp"
#include "sim/run/run.hpp"
#include "sim/run/run_config.hpp"
#include "sim/topology/device_dma.hpp"
#include "tests/test_support.hpp"

// Cases and helpers that the laws over schedules share.
namespace overlap::test {

/// One workload of every form: uneven sizes, three operators in the list.
inline std::vector<Workload> workload_forms() {
    const GemmShape gemm{1001, 700, 1003};
    using enum CollectiveKind;
    using enum Order;
    const auto pair = [&](CollectiveKind kind, Order order, ShardDim dim = ShardDim::m) {
        return Workload{"pair", "", pair_of(kind, order, gemm, dim)};
    };
    std::vector<Operator> list{{"ag", CollectiveWork{all_gather, Bytes(1e6)}, {}},
                               {"mm", gemm, {0}},
                               {"act", StreamingWork{Bytes(2e6), Bytes(1e6)}, {1}},
                               {"sum", ReductionWork{Bytes(1e6), 3}, {2}},
                               {"rs", CollectiveWork{reduce_scatter, Bytes(1e6)}, {1, 3}}};
    return {pair(all_gather, collective_first), pair(all_gather, collective_first, ShardDim::k),
            pair(all_to_all, collective_first), pair(all_to_all, gemm_first),
            pair(reduce_scatter, gemm_first),   pair(all_reduce, gemm_first),
            pair(all_gather, independent),      pair(all_gather, gemm_first),
            {"list", "", std::move(list)}};
}

/// Single GPU, full mesh, switch, unequal links with multi-hop routes, torus, two nodes.
inline const std::map<std::string, Machine>& law_machines() {
    static const std::map<std::string, Machine> machines = [] {
        std::map<std::string, Machine> result;
        for (const std::string name :
             {"mi300x_1", "mi300x_8", "h200_4", "mi250x_8", "torus_4x4", "mi300x_16"})
            result.emplace(name, shipped_machine(name));
        return result;
    }();
    return machines;
}

/// The task graph of a schedule with its default parameters, three chunks where it
/// takes chunks, and those of `given`.
inline TaskGraph build(const ScheduleEntry& entry, const Workload& workload, const Topology& topology,
                       Json given = Json::object(), GraphLimit limit = {}) {
    const bool chunked = entry.takes("chunks");
    if (chunked && !given.contains("chunks")) given["chunks"] = 3;
    return entry.build(workload, topology, entry.read({given, "params"}, workload, topology), limit);
}

/// Calls `law(entry, workload)` for every schedule and every form of workload
/// that it handles; returns how often.
template <class Law>
int for_every_schedule(Law&& law) {
    int cases = 0;
    static const std::vector<Workload> forms = workload_forms();
    for (const ScheduleEntry& entry : schedules())
        for (const Workload& workload : forms)
            if (entry.handles(workload)) {
                law(entry, workload);
                ++cases;
            }
    return cases;
}

/// Simulates on the default engine.
inline EngineResult simulate(const TaskGraph& graph, CostView costs, const Machine& machine) {
    return make_engine(default_engine)->run(graph, costs, machine.resources);
}

inline Costs costs_of(const TaskGraph& graph, const Workload& workload, const Machine& machine,
                      const Effects& effects = {}) {
    return price(graph, workload, machine, CostModels(), effects);
}

/// A shipped machine whose DMA engines serve first come, first served.
inline Machine in_order(const std::string& name) {
    const Json json = read_json_file(shipped.find("topologies", name));
    DeviceSpec device = shipped_machine(name).topology.device();
    device.dma->order = QueueOrder::fifo;
    device.dma->pulls = PullServer::receiver;
    Machine machine = machine_of({ConfigObject(json, name), device});
    machine.calibration = shipped_machine(name).calibration;
    return machine;
}

/// The same machine with other fabric: every bandwidth of a link times `factor`.
inline Machine with_links(const std::string& name, double factor) {
    Json json = read_json_file(shipped.find("topologies", name));
    for (Json& group : json["fabric"]) {
        Json& value = group["bandwidth_GBps"]["value"];
        value = value.get<double>() * factor;
    }
    Machine machine = shipped_machine(name);
    Machine wider = machine_of({ConfigObject(json, name), machine.topology.device()});
    wider.calibration = machine.calibration;
    return wider;
}

}  // namespace overlap::test
