#include "sim/run/observe.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "models/work_energy.hpp"
#include "sim/run/critical_path.hpp"
#include "sim/topology/device_losses.hpp"

namespace overlap {
namespace {

/// Begin and end of a task's body.
struct Body {
    Seconds start, length;
};

Body body_of(const TaskTimes& times) {
    return {times.body, times.done - times.body};
}

/// Whether only a claim counts the units of a GEMM (models/contention.hpp).
bool holds_without_demand(const Cost& cost) {
    return std::ranges::none_of(
        cost.demands, [&](const Demand& demand) { return demand.resource == cost.claim->resource; });
}

/// A sum of times that does not depend on the order of its terms: a whole number of 2^-80 s.
class SumOfTimes {
public:
    void add(double seconds, std::uint32_t times) { sum_ += times * static_cast<Integer>(seconds * units); }
    double times(int copies) const { return static_cast<double>(copies * sum_) / units; }

private:
    __extension__ using Integer = __int128;
    static constexpr double units = 0x1p80;
    Integer sum_ = 0;
};

/// GPUs that are alike have the same terms, in another order. `copies`: GPUs that each GPU of the graph stands for.
Utilisation utilisation_of(CostView costs, const EngineResult& simulated, const ResourceTable& resources,
                           int copies) {
    struct Kind {
        SumOfTimes used;  ///< at full capacity
        double count = 0;
    };
    std::array<Kind, resource_kind_names.size()> kinds;
    const auto of = [&](ResourceKind kind) -> Kind& { return kinds[static_cast<std::size_t>(kind)]; };
    const auto add = [&](ResourceId id, double amount, std::uint32_t times = 1) {
        of(resources[id].kind).used.add(amount / resources[id].capacity, times);
    };
    std::vector<std::uint32_t> tasks(costs.classes().size());  // by class
    for (TaskId id = 0; id < costs.size(); ++id) {
        const Cost& cost = costs[id];
        ++tasks[costs.class_of(id)];
        const double length = body_of(simulated.tasks[id]).length.si();
        for (const Hold& hold : cost.holds) add(hold.resource, hold.units * length);
        if (claimed<Blocks>(cost) != nullptr) add(cost.claim->resource, simulated.tasks[id].unit_seconds);
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const Cost& cost = costs.classes()[i];
        for (const Demand& demand : cost.demands) add(demand.resource, demand.amount, tasks[i]);
        if (const auto* tiles = claimed<Tiles>(cost); tiles != nullptr && holds_without_demand(cost))
            add(cost.claim->resource, cost.body.si() * tiles->count / tiles->waves, tasks[i]);
    }
    for (ResourceId id = 0; id < resources.size(); ++id) ++of(resources[id].kind).count;
    const auto mean_share = [&](ResourceKind kind) {
        const double all = of(kind).count * simulated.makespan.si();
        return all == 0 ? 0.0 : of(kind).used.times(copies) / all;
    };
    return {mean_share(ResourceKind::compute_units), mean_share(ResourceKind::hbm),
            mean_share(ResourceKind::link), mean_share(ResourceKind::dma)};
}

std::vector<Counter> counters_of(CostView costs, const EngineResult& simulated,
                                 const ResourceTable& resources) {
    std::map<ResourceId, std::map<Seconds, double>> changes;
    for (TaskId id = 0; id < costs.size(); ++id) {
        const auto [start, length] = body_of(simulated.tasks[id]);
        for (const Demand& demand : costs[id].demands) {
            const ResourceKind kind = resources[demand.resource].kind;
            if ((kind != ResourceKind::hbm && kind != ResourceKind::link) || length.si() <= 0) continue;
            const double rate = demand.amount / length.si();
            changes[demand.resource][start] += rate;
            changes[demand.resource][start + length] -= rate;
        }
    }
    std::vector<Counter> counters;
    for (const auto& [id, steps] : changes) {
        const Resource& resource = resources[id];
        Counter counter{resource.gpu, resource.name, {{Seconds(), 0.0}}};
        double value = 0;
        for (const auto& [time, change] : steps) {
            value += change;
            if (value < 1e-9 * resource.capacity) value = 0;  // rounding error of sums that cancel
            if (time == counter.samples.back().time)
                counter.samples.back().value = value;
            else
                counter.samples.push_back({time, value});
        }
        counters.push_back(std::move(counter));
    }
    return counters;
}

/// Compute units that a communication task uses on its GPU while its body runs.
double units_of(const Task& task, const Cost& cost, Seconds length, ResourceId compute_units) {
    double units = 0;
    if (task.kind() == TaskKind::copy || task.kind() == TaskKind::collective) {
        for (const Hold& hold : cost.holds)
            if (hold.resource == compute_units) units += hold.units;
        if (units == 0 && cost.claim && cost.claim->resource == compute_units) units = cost.claim->most;
    } else if (task.kind() == TaskKind::reduce && task.stream == local_stream && length > Seconds()) {
        for (const Demand& demand : cost.demands)
            if (demand.resource == compute_units) units += demand.amount / length.si();
    }
    return units;
}

/// Largest number of compute units that communication uses on one GPU at one time: held by copy kernels and
/// library collectives, or used by sums of partial results (averaged over their bodies). Packing around a
/// GEMM is no communication; DMA engines use no units. Of the GPUs that have `tasks`.
double communication_units(const TaskGraph& graph, std::span<const TaskId> tasks, CostView costs,
                           const EngineResult& simulated, const ResourceTable& resources) {
    struct Change {
        int gpu;
        Seconds time;
        double units;  // at one instant, ends come before begins
        auto operator<=>(const Change& other) const = default;
    };
    std::vector<Change> changes;
    for (const TaskId id : tasks) {
        const Task& task = graph[id];
        const auto [start, length] = body_of(simulated.tasks[id]);
        const double units = units_of(task, costs[id], length, resources.compute_units(task.gpu));
        if (units <= 0) continue;
        changes.push_back({task.gpu, start, units});
        changes.push_back({task.gpu, start + length, -units});
    }
    std::ranges::sort(changes);
    double most = 0, now = 0;
    int gpu = -1;
    for (const Change& change : changes) {
        if (change.gpu != gpu) now = 0;
        gpu = change.gpu;
        now += change.units;
        most = std::max(most, std::min(now, resources[resources.compute_units(gpu)].capacity));
    }
    return most;
}

}  // namespace

Timeline timeline_of(const TaskGraph& graph, CostView costs, const EngineResult& simulated) {
    std::vector<Span> spans;
    spans.reserve(graph.size());
    for (TaskId id = 0; id < graph.size(); ++id) {
        const Task& task = graph[id];
        const TaskTimes& times = simulated.tasks[id];
        spans.push_back(
            {task.name(), task.kind(), task.gpu, graph.name_of_stream(task.stream), times.start, times.end});
        const Seconds alone = times.body - costs[id].setup - costs[id].launch.time;
        if (task.by_dma()) spans.back().taken = std::max(times.start, alone);
    }
    return Timeline(std::move(spans));
}

std::optional<Energy> energy_of(const TaskGraph& graph, CostView costs, const EngineResult& simulated,
                                const Machine& machine, const std::optional<Rotations>& alike) {
    const DeviceSpec& device = machine.topology.device();
    if (!device.energy) return std::nullopt;
    Energy energy;
    std::vector<std::vector<Interval>> busy(static_cast<std::size_t>(machine.topology.gpus()));
    for (TaskId id = 0; id < graph.size(); ++id) {
        const std::optional<Energy> work = work_energy(graph[id], costs[id], machine);
        if (!work) return std::nullopt;
        energy += *work;
        if (graph[id].kind() == TaskKind::host) continue;
        const Interval body{simulated.tasks[id].body, simulated.tasks[id].done};
        const auto run_on = [&](int gpu) {
            busy[static_cast<std::size_t>(alike ? alike->representative(gpu) : gpu)].push_back(body);
        };
        run_on(graph[id].gpu);
        if (const auto* copy = std::get_if<CopyWork>(&graph[id].work))
            for_each_way(*copy, [&](int src, int dst) { run_on(src), run_on(dst); });
    }
    const Seconds all = static_cast<double>(busy.size()) * simulated.makespan;
    const double copies = alike ? alike->of_orbit() : 1;
    energy = copies * energy;
    energy.idle = device.energy->idle * all;
    for (std::vector<Interval>& bodies : busy)
        energy.active += copies * device.energy->active * covered(std::move(bodies));
    const Joules beyond = energy.total() - device.board_power * all;
    if (beyond > Joules()) energy.power_limit = -power_limited_share(graph, machine) * beyond;
    return energy;
}

void observe(const TaskGraph& graph, CostView costs, const EngineResult& simulated, const Machine& machine,
             const std::optional<Rotations>& alike, const std::optional<Rotations>& rotations,
             RunResult& result) {
    std::vector<TaskId> of_representatives;
    std::vector<Activity> activities;
    for (TaskId id = 0; id < graph.size(); ++id) {
        if (rotations && rotations->representative(graph[id].gpu) != graph[id].gpu) continue;
        of_representatives.push_back(id);
        activities.push_back(
            {graph[id].kind(), graph[id].gpu, simulated.tasks[id].start, simulated.tasks[id].end});
    }
    result.phases.exposed_comm = exposed_communication(activities);
    result.used.utilisation =
        utilisation_of(costs, simulated, machine.resources, alike ? alike->of_orbit() : 1);
    result.used.comm_cus =
        communication_units(graph, of_representatives, costs, simulated, machine.resources);
    result.used.energy = energy_of(graph, costs, simulated, machine, alike);
}

void record(TaskGraph graph, CostView costs, const EngineResult& simulated, const ResourceTable& resources,
            RunResult& result) {
    result.observed.timeline = timeline_of(graph, costs, simulated);
    result.observed.counters = counters_of(costs, simulated, resources);
    std::vector<Interval> bodies;
    bodies.reserve(graph.size());
    for (const TaskTimes& times : simulated.tasks) bodies.emplace_back(times.body, times.done);
    std::vector<TaskId> critical = critical_path(graph, costs, simulated, resources);
    result.observed.recording = Recording{std::move(graph), std::move(bodies), std::move(critical)};
}

}  // namespace overlap
