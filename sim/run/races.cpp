#include "sim/run/races.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/core/mixed.hpp"
#include "sim/run/effects.hpp"

namespace overlap {
namespace {

bool is_copy_kernel(const Task& task, const Cost& cost) {
    return task.kind() == TaskKind::copy && !task.by_dma() && claimed<Blocks>(cost) != nullptr;
}

bool is_local(const Task& task) {
    return task.kind() == TaskKind::local_copy || task.kind() == TaskKind::reduce;
}

/// Of the time that a fit gives to a GEMM's start and end, what is ahead of its claim. Behind sums and local copies of 10 to 50 us
/// GEMMs lose 2.5 us less than these take (chains.tar.xz in traces/h100_2 and h200_2).
constexpr double start_share = 0.8;
/// After this a kernel that is ready finds the units taken.
constexpr Seconds at_once(1e-9);

/// A number from 0 to 1 that is drawn for a task.
double draw(TaskId task, std::uint64_t seed) {
    constexpr double all = 18446744073709551616.0;  // 2^64
    return static_cast<double>(mixed(mixed(seed) ^ task)) / all;
}

/// Kernels of other streams of the GPU that wait for a task, by task.
struct Waiting {
    std::map<TaskId, std::vector<TaskId>> copies;
    std::map<TaskId, bool> local;

    Waiting(const TaskGraph& graph, const Costs& costs) {
        for (TaskId id = 0; id < graph.size(); ++id) {
            const bool is_copy = is_copy_kernel(graph[id], costs[id]);
            if (!is_copy && !is_local(graph[id])) continue;
            graph.for_each_edge_into(id, [&](const Edge& edge) {
                const TaskId before = edge.predecessor;
                if (graph[before].gpu != graph[id].gpu ||
                    graph.stream_number(before) == graph.stream_number(id))
                    return;
                if (is_copy)
                    copies[before].push_back(id);
                else
                    local[before] = true;
            });
            const TaskId before = graph.stream_predecessor(id);
            if (before != id && is_local(graph[before])) local[before] = true;
        }
    }
};

void claim_later(Cost& gemm, Seconds start, ResourceId clock) {
    const Seconds moved = std::min(start, gemm.body);
    gemm.launch.time += moved;
    gemm.body = gemm.body - moved;
    for (Demand& demand : gemm.demands)
        if (demand.resource == clock) demand.amount = std::min(demand.amount, gemm.body.si());
}

}  // namespace

Races::Races(const TaskGraph& graph, const Costs& costs, const Machine& machine)
    : gemm_first_(machine.topology.device().launch.gemm_first) {
    constexpr int most_gpus = 4;
    if (machine.topology.gpus() > most_gpus) gemm_first_ = 1;
    if (machine.topology.device().launch.residency != Residency::persistent) return;
    const Waiting waiting(graph, costs);
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* gemm = std::get_if<GemmShape>(&graph[id].work);
        const TaskId before = graph.stream_predecessor(id);
        if (gemm == nullptr || claimed<Tiles>(costs[id]) == nullptr) continue;
        const auto calibrated = machine.calibration.gemm.find(gemm->dtype);
        if (calibrated == machine.calibration.gemm.end()) continue;
        // A GEMM that waits for communication starts after the copies, so it races none of them.
        bool waits = false, behind_local = before != id && waiting.local.contains(before);
        graph.for_each_edge_into(id, [&](const Edge& edge) {
            const TaskId awaited = edge.predecessor;
            waits = waits || is_communication(graph[awaited].kind());
            behind_local = behind_local || (is_local(graph[awaited]) && waiting.local.contains(awaited));
        });
        const auto copies = before == id || waits ? waiting.copies.end() : waiting.copies.find(before);
        const bool races = copies != waiting.copies.end();
        if (!races && !behind_local) continue;
        gemms_.push_back({id, before, start_share * calibrated->second.launch,
                          machine.resources.clock(graph[id].gpu),
                          races ? copies->second : std::vector<TaskId>()});
        copies_race_ = copies_race_ || races;
    }
}

Costs Races::drawn(Costs costs, std::uint64_t seed) const {
    std::map<std::pair<std::uint32_t, Seconds>, std::uint32_t> changed;  // by class and what is changed by
    const auto change = [&](TaskId task, Seconds by, auto&& how) {
        const auto [found, is_new] =
            changed.try_emplace({costs.class_of[task], by}, static_cast<std::uint32_t>(costs.classes.size()));
        if (is_new) {
            Cost cost = costs[task];
            how(cost);
            costs.classes.push_back(std::move(cost));
        }
        costs.class_of[task] = found->second;
    };
    for (const Gemm& gemm : gemms_) {
        if (gemm.copies.empty() || draw(gemm.task, seed) >= gemm_first_) {
            change(gemm.task, gemm.start, [&](Cost& cost) { claim_later(cost, gemm.start, gemm.clock); });
            continue;
        }
        // Copies that would be earlier begin right after it.
        const Cost& before = costs[gemm.before];
        const Seconds taken = std::get<Completion>(before.end).event + costs[gemm.task].launch.time + at_once;
        for (const TaskId copy : gemm.copies) {
            const Seconds launch = taken - before.handoffs.other_stream;
            if (launch > costs[copy].launch.time)
                change(copy, launch, [&](Cost& cost) { cost.launch.time = launch; });
        }
    }
    return costs;
}

}  // namespace overlap
