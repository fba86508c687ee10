#include "sim/pricing/races.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/core/mixed.hpp"
#include "sim/pricing/effects.hpp"
#include "sim/topology/device_launch.hpp"

namespace overlap {
namespace {

bool is_copy_kernel(const Task& task, const Cost& cost) {
    return task.kind() == TaskKind::copy && !task.by_dma() && claimed<Blocks>(cost) != nullptr;
}

bool is_local(const Task& task) {
    return task.kind() == TaskKind::local_copy || task.kind() == TaskKind::reduce;
}

/// The part of a GEMM's start and end, as fitted, that is ahead of its claim. Behind sums and local copies
/// of 10 to 50 us GEMMs lose 2.5 us less than these take (chains.tar.xz in traces/h100_2 and h200_2).
constexpr double start_share = 0.8;
/// A kernel that becomes ready this much later than a GEMM finds the units taken.
constexpr Seconds at_once(1e-9);

/// A number from 0 to 1 that is drawn for a task.
double draw(TaskId task, std::uint64_t seed) {
    constexpr double all = 18446744073709551616.0;  // 2^64
    return static_cast<double>(mixed(mixed(seed) ^ task)) / all;
}

/// Calls `found(id)` for each task of the kernel's GPU and of another stream that the kernel waits for.
template <class Found>
void for_each_awaited(const TaskGraph& graph, TaskId kernel, Found&& found) {
    graph.for_each_edge_into(kernel, [&](const Edge& edge) {
        const TaskId before = edge.predecessor;
        if (!edge.from_other_gpu && graph[before].gpu == graph[kernel].gpu &&
            graph.stream_number(before) != graph.stream_number(kernel))
            found(before);
    });
}

/// Whether a task's end makes a kernel of the same GPU ready.
struct Behind {
    std::vector<bool> copy;  ///< a copy kernel of another stream
    /// A sum or a local copy: of another stream, or behind a sum or a local copy of the same stream.
    std::vector<bool> local;

    Behind(const TaskGraph& graph, const Costs& costs) : copy(graph.size()), local(graph.size()) {
        for (TaskId id = 0; id < graph.size(); ++id) {
            const bool is_copy = is_copy_kernel(graph[id], costs[id]);
            if (!is_copy && !is_local(graph[id])) continue;
            for_each_awaited(graph, id, [&](TaskId before) { (is_copy ? copy : local)[before] = true; });
            const TaskId before = graph.stream_predecessor(id);
            if (before != id && !is_copy && is_local(graph[before])) local[before] = true;
        }
    }
};

/// Moves `start` of the body ahead of the claim; the GEMM's time alone stays the same. Its demand for the clock has
/// the length of the body; with the old length the demand would hold the GEMM up.
void claim_later(Cost& gemm, Seconds start, ResourceId clock) {
    const Seconds moved = std::min(start, gemm.body);
    gemm.launch.time += moved;
    gemm.body = gemm.body - moved;
    for (Demand& demand : gemm.demands)
        if (demand.resource == clock) demand.amount = std::min(demand.amount, gemm.body.si());
}

}  // namespace

Races::Races(const TaskGraph& graph, const Costs& costs, const Machine& machine)
    : gemm_first_(machine.topology.device().launch->gemm_first) {
    constexpr int most_gpus = 4;
    if (machine.topology.gpus() > most_gpus) gemm_first_ = 1;
    if (machine.topology.device().launch->residency != Residency::persistent) return;
    const Behind behind(graph, costs);
    std::map<TaskId, std::size_t> racing;  // place in gemms_, by the task that GEMM and copies wait for
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* gemm = std::get_if<GemmShape>(&graph[id].work);
        const TaskId before = graph.stream_predecessor(id);
        if (gemm == nullptr || claimed<Tiles>(costs[id]) == nullptr) continue;
        // A GEMM that waits for communication starts after the copies, so it races none of them.
        bool waits = false, second = before != id && behind.local[before];
        graph.for_each_edge_into(id, [&](const Edge& edge) {
            const TaskId awaited = edge.predecessor;
            waits = waits || is_communication(graph[awaited].kind());
            second = second || (is_local(graph[awaited]) && behind.local[awaited]);
        });
        const bool races = before != id && !waits && behind.copy[before];
        if (!races && !second) continue;
        const auto calibrated = machine.calibration.gemm.find(gemm->dtype);
        if (calibrated == machine.calibration.gemm.end()) continue;
        if (races) racing[before] = gemms_.size();
        gemms_.push_back({id,
                          before,
                          start_share * calibrated->second.launch,
                          machine.resources.clock(graph[id].gpu),
                          {}});
    }
    add_roots(graph, costs, machine);
    copies_race_ = !racing.empty();
    for (TaskId id = 0; copies_race_ && id < graph.size(); ++id)
        if (is_copy_kernel(graph[id], costs[id]))
            for_each_awaited(graph, id, [&](TaskId before) {
                const auto found = racing.find(before);
                if (found != racing.end()) gemms_[found->second].copies.push_back(id);
            });
}

void Races::add_roots(const TaskGraph& graph, const Costs& costs, const Machine& machine) {
    std::map<int, Seconds> launched;  // by GPU: when collectives that were enqueued so far have their units
    for (TaskId id = 0; id < graph.size(); ++id) {
        bool waits = graph.stream_predecessor(id) != id;
        graph.for_each_edge_into(id, [&](const Edge&) { waits = true; });
        const Cost& cost = costs[id];
        if (waits || !cost.claim) continue;
        const int gpu = graph[id].gpu;
        if (graph[id].kind() == TaskKind::collective) {
            Seconds& last = launched[gpu];
            last = std::max(last, cost.launch.time);
        } else if (const auto before = launched.find(gpu); before != launched.end() &&
                                                           graph[id].kind() == TaskKind::gemm &&
                                                           cost.launch.time <= before->second) {
            gemms_.push_back(
                {id, id, before->second + at_once - cost.launch.time, machine.resources.clock(gpu), {}});
        }
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
        const Seconds launch = std::get<Completion>(before.end).event + costs[gemm.task].launch.time +
                               at_once - before.handoffs.other_stream;
        for (const TaskId copy : gemm.copies)
            if (launch > costs[copy].launch.time)
                change(copy, launch, [&](Cost& cost) { cost.launch.time = launch; });
    }
    return costs;
}

}  // namespace overlap
