#include "sim/run/races.hpp"

#include <algorithm>
#include <map>

#include "sim/core/mixed.hpp"
#include "sim/run/effects.hpp"

namespace overlap {
namespace {

bool is_copy_kernel(const Task& task, const Cost& cost) {
    return task.kind() == TaskKind::copy && !task.by_dma() && claimed<Blocks>(cost) != nullptr;
}

/// A number from 0 to 1 that is drawn for a task.
double draw(TaskId task, std::uint64_t seed) {
    constexpr double all = 18446744073709551616.0;  // 2^64
    return static_cast<double>(mixed(mixed(seed) ^ task)) / all;
}

}  // namespace

Races::Races(const TaskGraph& graph, const Costs& costs, const Machine& machine)
    : gemm_first_(machine.topology.device().launch.gemm_first) {
    constexpr int most_gpus = 4;
    if (gemm_first_ == 1 || machine.topology.gpus() > most_gpus) return;
    std::vector<bool> releases_copy(graph.size());
    for (TaskId id = 0; id < graph.size(); ++id)
        if (is_copy_kernel(graph[id], costs[id]))
            graph.for_each_edge_into(id, [&](const Edge& edge) {
                const TaskId before = edge.predecessor;
                if (graph[before].gpu == graph[id].gpu &&
                    graph.stream_number(before) != graph.stream_number(id))
                    releases_copy[before] = true;
            });
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* gemm = std::get_if<GemmShape>(&graph[id].work);
        const TaskId before = graph.stream_predecessor(id);
        if (gemm == nullptr || before == id || !releases_copy[before] || claimed<Tiles>(costs[id]) == nullptr)
            continue;
        // A GEMM that waits for communication starts after the copies, so it races none of them.
        bool waits = false;
        graph.for_each_edge_into(
            id, [&](const Edge& edge) { waits = waits || is_communication(graph[edge.predecessor].kind()); });
        if (waits) continue;
        const auto calibrated = machine.calibration.gemm.find(gemm->dtype);
        if (calibrated != machine.calibration.gemm.end()) gemms_.push_back({id, calibrated->second.launch});
    }
}

Costs Races::drawn(Costs costs, std::uint64_t seed) const {
    std::map<std::uint32_t, std::uint32_t> second;  // by class: of GEMMs that are second
    for (const Gemm& gemm : gemms_) {
        if (draw(gemm.task, seed) < gemm_first_) continue;
        const auto [found, is_new] =
            second.try_emplace(costs.class_of[gemm.task], static_cast<std::uint32_t>(costs.classes.size()));
        if (is_new) {
            Cost later = costs[gemm.task];
            const Seconds moved = std::min(gemm.launch, later.body);
            later.launch.time += moved;
            later.body = later.body - moved;
            costs.classes.push_back(std::move(later));
        }
        costs.class_of[gemm.task] = found->second;
    }
    return costs;
}

}  // namespace overlap
