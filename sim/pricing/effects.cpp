#include "sim/pricing/effects.hpp"

#include <algorithm>
#include <optional>

#include "models/contention.hpp"
#include "models/gpu_spread.hpp"
#include "sim/core/shown.hpp"
#include "sim/engine/engine.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_losses.hpp"

namespace overlap {
namespace {

void remove_latencies(Cost& cost) {
    cost.launch = {.ahead = cost.launch.ahead};
    cost.setup = cost.switch_over = Seconds();
    cost.end = Completion();
    cost.handoffs = {};
}

/// All GPUs run GEMMs at the speed of the slowest one: GEMM time = mean GPU time × this factor.
double slowest_gpu(const Machine& machine) {
    return slowest_of(machine.topology.gpus(), machine.topology.device().variation->gpu_speed);
}

Cost cost_alone(const Task& task, const Machine& machine, const CostModels& models, double slowest) {
    Cost cost = models.cost(task, machine);
    if (task.kind() != TaskKind::gemm) return cost;
    if (const double time = slowest / machine.topology.gemm_speed(task.gpu); time != 1) scale(cost, time);
    return cost;
}

Task whole_gemm(const GemmShape& shape, int gpu) {
    return {shape, gpu, compute_stream};
}

/// The GEMM of which `task` is a part: that of a pair, or in a list that of an operator which is cut. Null for tasks of
/// other kinds, and for whole operators of a list.
const GemmShape* whole_of(const Workload& workload, const Task& task) {
    if (task.kind() != TaskKind::gemm) return nullptr;
    if (const Pair* pair = workload.pair()) return &pair->gemm;
    if (task.op < 0) return nullptr;
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    const auto& whole = std::get<GemmShape>(operators[static_cast<std::size_t>(task.op)].work);
    const bool is_part = task.persistent || std::get<GemmShape>(task.work).flops() < whole.flops();
    return is_part ? &whole : nullptr;
}

/// Cost of a part of a GEMM without decomposition loss: its share of the whole. None if its own cost `alone` is lower.
std::optional<Cost> without_loss(const Cost& alone, Cost whole, const GemmShape& shape, const Task& part,
                                 const ResourceTable& resources) {
    scale(whole, std::get<GemmShape>(part.work).flops() / shape.flops());
    if (isolated_body(alone, resources) < isolated_body(whole, resources)) return std::nullopt;
    return whole;
}

bool has_library_kernel(const TaskGraph& graph, const TaskClasses& classes) {
    return std::ranges::any_of(classes.first,
                               [&](TaskId id) { return graph[id].kind() == TaskKind::collective; });
}

/// Whether only the release delays a task. Then the task is the first of its stream and waits for no other
/// task, and its stream is not the GPU's first, that of the GPU's first task, which records the event that the other
/// streams wait for. Empty if no stream waits.
std::vector<bool> waits_for_release(const TaskGraph& graph, Seconds release, const Effects& effects) {
    if (release == Seconds() || !effects.launch || !effects.host) return {};
    std::vector<bool> waits(graph.size());
    std::vector<std::optional<std::size_t>> first(static_cast<std::size_t>(graph.gpus()));  // stream by GPU
    for (TaskId id = 0; id < graph.size(); ++id) {
        auto& stream = first[static_cast<std::size_t>(graph[id].gpu)];
        if (!stream) stream = graph.stream_number(id);
        waits[id] = graph.stream_predecessor(id) == id && *stream != graph.stream_number(id);
    }
    for (std::size_t i = 0; i < graph.edge_count(); ++i)
        if (graph.edge(i).to == 0) waits[graph.edge(i).successor] = false;
    return waits;
}

/// Whether nothing waits for a task, not even the next task of its stream. Such tasks end a run.
std::vector<bool> last_tasks(const TaskGraph& graph) {
    std::vector<bool> last(graph.size(), true);
    for (TaskId id = 0; id < graph.size(); ++id)
        if (const TaskId before = graph.stream_predecessor(id); before != id) last[before] = false;
    for (std::size_t i = 0; i < graph.edge_count(); ++i) last[graph.edge(i).predecessor] = false;
    return last;
}

/// Whether the event at the end of a run adds to this task's time. Times of copies between GPUs contain such an event
/// already.
bool has_event_behind(TaskKind kind) {
    return kind == TaskKind::gemm || kind == TaskKind::local_copy || kind == TaskKind::reduce ||
           kind == TaskKind::memory_bound;
}

/// True for a GEMM that waits for nothing but a GEMM before it on its stream. GEMM times are of GEMMs back to back,
/// so they hold what lies between two of them, and no launch is added. One that also waits for another stream takes
/// 1.1 to 1.7 us more, and one behind another kernel 2.5 to 3.1 (traces/h100_2/hand_over.tar.xz).
bool starts_behind(const TaskGraph& graph, TaskId task) {
    const TaskId before = graph.stream_predecessor(task);
    if (before == task || graph[task].kind() != TaskKind::gemm || graph[before].kind() != TaskKind::gemm)
        return false;
    bool waits = false;
    graph.for_each_edge_into(task, [&](const Edge& edge) {
        waits = waits || graph.stream_number(edge.predecessor) != graph.stream_number(task);
    });
    return !waits;
}

/// `alone` gives the cost of a class of tasks without interference, from its number and its first task.
template <class CostAlone>
Costs price_all(const TaskGraph& graph, const TaskClasses& classes, const Machine& machine, Seconds release,
                const Effects& effects, const CostAlone& alone) {
    const bool library_runs = has_library_kernel(graph, classes);
    const std::vector<bool> released = waits_for_release(graph, release, effects);
    const std::vector<bool> last = released.empty() ? released : last_tasks(graph);
    Costs costs{{}, classes.of};
    costs.classes.reserve(classes.first.size());
    for (const TaskId first : classes.first) {
        const Task& task = graph[first];
        const TaskKind kind = task.kind();
        const bool free = (!effects.computation && is_computation(kind)) ||
                          (!effects.packing && kind == TaskKind::local_copy) ||
                          (!effects.host && kind == TaskKind::host);
        if (free) {
            costs.classes.emplace_back();
            continue;
        }
        Cost& cost = costs.classes.emplace_back(alone(costs.classes.size(), task));
        if (effects.contention)
            add_interference(task, machine, cost, library_runs);
        else
            remove_contention(task, machine, cost);
        if (starts_behind(graph, first)) cost.launch.time = Seconds();
        if (!effects.launch) remove_latencies(cost);
        if (released.empty()) continue;
        if (released[first]) cost.launch.time += release;
        if (last[first] && has_event_behind(kind))
            std::get<Completion>(cost.end).latency += machine.topology.device().launch->event;
    }
    return costs;
}

}  // namespace

void scale(Cost& cost, double share) {
    cost.body = cost.body * share;
    for (Demand& demand : cost.demands) demand.amount *= share;
}

bool is_computation(TaskKind kind) {
    return kind == TaskKind::gemm || kind == TaskKind::memory_bound || kind == TaskKind::local_copy;
}

bool is_communication(TaskKind kind) {
    return !is_computation(kind) && kind != TaskKind::host;
}

Effects without(std::span<const std::string> names) {
    Effects effects;
    const std::array<bool*, 5> switches{&effects.host, &effects.contention, &effects.launch, &effects.packing,
                                        &effects.decomposition};
    for (const std::string& name : names) {
        const auto found = std::ranges::find(effect_names, name);
        if (found == effect_names.end())
            throw UserError("without: " + in_quotes(name) + " is no effect" + suggestion(name, effect_names));
        *switches[static_cast<std::size_t>(found - effect_names.begin())] = false;
    }
    return effects;
}

// Looks at the last few tasks of the stream only: a pipeline repeats what it does.
TaskClasses::TaskClasses(const TaskGraph& graph, bool ends_apart) {
    constexpr int few = 4;
    // No cost model reads shard, chunk or priority.
    const auto alike = [&](TaskId one, TaskId other) {
        const Task &a = graph[one], &b = graph[other];
        return a.op == b.op && a.gemm_cus == b.gemm_cus && a.cu_mask == b.cu_mask &&
               a.persistent == b.persistent && a.continues == b.continues && a.work == b.work &&
               (a.kind() != TaskKind::gemm || starts_behind(graph, one) == starts_behind(graph, other));
    };
    const std::vector<bool> last = ends_apart ? last_tasks(graph) : std::vector<bool>(graph.size());
    of.reserve(graph.size());
    for (TaskId id = 0; id < graph.size(); ++id) {
        TaskId before = id;
        bool found = false;
        for (int i = 0; i < few && !found && !last[id]; ++i) {
            before = graph.stream_predecessor(before);
            const bool is_first = graph.stream_predecessor(before) == before;
            if (before == id || (ends_apart && is_first)) break;
            found = alike(before, id);
            if (is_first) break;
        }
        of.push_back(found ? of[before] : static_cast<std::uint32_t>(first.size()));
        if (!found) first.push_back(id);
    }
}

Pricer::Pricer(const TaskGraph& graph, const Workload& workload, const Machine& machine,
               const CostModels& models, Seconds release)
    : graph_(graph),
      machine_(machine),
      release_(release),
      classes_(graph, release > Seconds()),
      alone_{{}, classes_.of} {
    const double slowest = slowest_gpu(machine);
    alone_.classes.reserve(classes_.first.size());
    std::map<std::pair<int, int>, Cost> wholes;  // by Task::op and GPU: GEMMs of which the graph has parts
    for (const TaskId first : classes_.first) {
        const Task& task = graph[first];
        alone_.classes.push_back(cost_alone(task, machine, models, slowest));
        has_host_ = has_host_ || task.kind() == TaskKind::host;
        has_packing_ = has_packing_ || task.kind() == TaskKind::local_copy;
        const GemmShape* whole = whole_of(workload, task);
        if (whole == nullptr) continue;
        const auto [found, is_new] = wholes.try_emplace({task.op, task.gpu});
        if (is_new) found->second = cost_alone(whole_gemm(*whole, task.gpu), machine, models, slowest);
        if (auto cost = without_loss(alone_.classes.back(), found->second, *whole, task, machine.resources))
            lossless_.emplace(alone_.classes.size() - 1, *std::move(cost));
    }
    require_simulable(graph, alone_, machine.resources);
}

Costs Pricer::price(const Effects& effects) const {
    return price_all(
        graph_, classes_, machine_, release_, effects, [&](std::size_t number, const Task&) -> const Cost& {
            const auto lossless = effects.decomposition ? lossless_.end() : lossless_.find(number);
            return lossless == lossless_.end() ? alone_.classes[number] : lossless->second;
        });
}

Costs price(const TaskGraph& graph, const Workload& workload, const Machine& machine,
            const CostModels& models, const Effects& effects, Seconds release) {
    const double slowest = slowest_gpu(machine);
    return price_all(graph, TaskClasses(graph, release > Seconds()), machine, release, effects,
                     [&](std::size_t, const Task& task) {
                         Cost alone = cost_alone(task, machine, models, slowest);
                         const GemmShape* whole = effects.decomposition ? nullptr : whole_of(workload, task);
                         if (whole == nullptr) return alone;
                         return without_loss(
                                    alone, cost_alone(whole_gemm(*whole, task.gpu), machine, models, slowest),
                                    *whole, task, machine.resources)
                             .value_or(alone);
                     });
}

}  // namespace overlap
