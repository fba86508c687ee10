#include "sim/run/budget.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "sim/core/available_memory.hpp"
#include "sim/run/run_config.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap {
namespace {

// Upper bounds of the peak resident memory, measured with GCC 12 and glibc on h100_64_rail, where every GPU is
// simulated: runs of 66,000 to 530,000 tasks with two simulations side by side took 0.55 to 0.79 of what follows, one
// simulation alone 420 bytes for each task with its edge.
constexpr Bytes of_program{40e6}, of_task{350}, of_simulated_task{450}, of_edge{150};
// Links, routes and resources of a machine: 6.4 kB for each GPU of mi300x_16384_rail, 6.2 kB of mi300x_100000_rail.
constexpr Bytes of_gpu{7e3};
// Wall time per task in one simulation of the flow engine.
constexpr Seconds of_simulation{5e-6};
// More for each pair of copy kernels that run at once and end apart, because one end changes the rates of those that
// share links with it: 4 s of a run with 4,032 such kernels in 4,224 tasks (b200_64_rail, hetero_fused_1d, ficco_g1,
// chunks=1, agent=cu). With chunks=2 a run takes 61 s: an instant changes 3,100 rates on average, not 290. Check:
// h100_64_rail takes 3.4 and 53 s.
constexpr Seconds of_kernel_pair{7.5e-12};
constexpr double with_several_chunks = 6;
constexpr double simgrid_slowdown = 75;  // README, "Speed"

// A graph of so many is built in two seconds and simulated in minutes.
constexpr std::size_t most_tasks = 4'000'000;

/// Size of a graph in memory.
struct BuiltSize {
    double tasks = 0, edges = 0;
};

/// Simulations of one run that are in memory at the same time (Jobs in run.cpp, seeds of the flow engine).
double side_by_side(const Scenario& scenario, double tasks) {
    if (tasks < 20'000 || scenario.settings.engine != default_engine) return 1;
    return std::clamp<double>(std::thread::hardware_concurrency(), 1, 7);
}

/// The simulations of a graph beyond this limit take more memory than `available`, or minutes. Graphs are built to find
/// out; alone they are an eighth of the memory.
GraphLimit limit_within(Bytes available, const Scenario& scenario) {
    const GraphLimit most{most_tasks, GraphLimit().edges};
    const auto count = [&](Bytes each, std::size_t limit) {
        return static_cast<std::size_t>(std::min(available / each, static_cast<double>(limit)));
    };
    const double at_once = side_by_side(scenario, static_cast<double>(most.tasks));
    return {count(of_task + at_once * of_simulated_task, most.tasks), count(of_edge, most.edges)};
}

bool orders_vary(const Scenario& scenario) {
    const DeviceDma& dma = *scenario.machine->topology.device().dma;
    const auto vary = [&](const ScheduleParams& params) {
        const TransferOptions& transfers = params.transfers;
        const bool as_enqueued = transfers.direction == Direction::pull && dma.pulls == PullServer::sender;
        return transfers.agent == Agent::dma && dma.order == QueueOrder::unspecified && !as_enqueued;
    };
    return vary(scenario.params) ||
           std::ranges::any_of(scenario.pairs, [&](const PairChoice& pair) { return vary(pair.params); });
}

/// Time per task for pairs of copy kernels that run at once, where GPUs launch them one after another. Elsewhere
/// kernels of GPUs that are alike end together.
Seconds of_kernel_pairs(const TaskGraph& graph, const DeviceSpec& device) {
    if (device.copy_kernel->queued_launch == Seconds()) return {};
    std::vector<double> units(static_cast<std::size_t>(graph.gpus()), device.compute_units);
    std::vector<bool> seen(graph.streams());
    double kernels = 0;
    bool several_chunks = false;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* copy = std::get_if<CopyWork>(&graph[id].work);
        if (copy == nullptr || copy->agent != Agent::cu || copy->stored) continue;
        const std::size_t stream = graph.stream_number(id);
        several_chunks = several_chunks || seen[stream];
        double& left = units[static_cast<std::size_t>(graph[id].gpu)];
        if (seen[stream] || left < copy->cus) continue;
        seen[stream] = true;
        left -= copy->cus;
        ++kernels;
    }
    return kernels * kernels * (several_chunks ? with_several_chunks : 1) * of_kernel_pair;
}

/// Of one run, by the seeds that its graphs are simulated with: of its own graph, and of `serial`.
struct Simulations {
    double own, serial;
};
Simulations most_of(const Scenario& scenario) {
    // By every seed the run, its transfers and serial; by the seed of the median the run again, four runs with effects
    // off, transfers without effects, two runs of serial.
    const double seeds = orders_vary(scenario) ? scenario.settings.seeds : 1;
    // The baseline tries DMA in both directions, copy kernels and the library.
    const bool drawn = scenario.machine->topology.device().dma->order == QueueOrder::unspecified;
    const double other_ways = scenario.serial_alike ? 0 : 2 * (drawn ? scenario.settings.seeds : 1) + 2;
    return {2 * seeds + 6, seeds + 2 + other_ways};
}

}  // namespace

double most_simulations(const Scenario& scenario) {
    const auto [own, serial] = most_of(scenario);
    return own + serial;
}

RunBudget budget_of(const Scenario& scenario, Bytes available) {
    const Topology& topology = scenario.machine->topology;
    RunBudget budget;
    Seconds more;  // per task
    const auto measured = [&](TaskGraph (Scenario::*build)(GraphLimit) const, bool own) -> BuiltSize {
        try {
            const TaskGraph graph = (scenario.*build)(limit_within(available, scenario));
            if (own) more = of_kernel_pairs(graph, topology.device());
            return {static_cast<double>(graph.size()), static_cast<double>(graph.edge_count())};
        } catch (const GraphTooLarge& large) {
            budget.at_least = true;
            return {static_cast<double>(large.tasks), static_cast<double>(large.edges)};
        }
    };
    const BuiltSize own = measured(&Scenario::graph, true);
    const BuiltSize serial = scenario.has_workload() ? measured(&Scenario::serial_graph, false) : BuiltSize();
    const double like_each =
        scenario.params.transfers.alike ? scenario.params.transfers.alike->of_orbit() : 1;
    budget.tasks = like_each * own.tasks;
    budget.edges = like_each * own.edges;
    const double at_once = side_by_side(scenario, own.tasks);
    budget.memory = of_program + static_cast<double>(topology.gpus()) * of_gpu +
                    (own.tasks + 2 * serial.tasks) * of_task +
                    at_once * std::max(own.tasks, serial.tasks) * of_simulated_task +
                    (own.edges + 2 * serial.edges) * of_edge;
    budget.simulations = most_simulations(scenario);
    const auto [of_own, of_serial] = most_of(scenario);
    const bool flows = scenario.settings.engine == default_engine;
    budget.wall = (flows ? 1 : simgrid_slowdown) / at_once * (of_own * own.tasks + of_serial * serial.tasks) *
                  of_simulation;
    if (flows) budget.wall = (1 + more / of_simulation) * budget.wall;
    return budget;
}

Json to_json(const RunBudget& budget) {
    Json json{{"tasks", static_cast<std::int64_t>(budget.tasks)},
              {"edges", static_cast<std::int64_t>(budget.edges)},
              {"simulations_at_most", static_cast<std::int64_t>(budget.simulations)},
              {"memory_MB", std::ceil(budget.memory.si() * 1e-6)},
              {"wall_s", std::ceil(budget.wall.si() * 10) / 10}};
    if (budget.at_least) json["or_more"] = true;
    return json;
}

void require_affordable(const RunBudget& budget, Bytes available) {
    const std::string tasks = std::to_string(static_cast<std::int64_t>(budget.tasks)) + " tasks";
    if (budget.at_least && budget.memory <= available)
        throw UserError("graphs of more than " + std::to_string(most_tasks) +
                        " tasks take minutes (allowed: sim --allow-large)");
    require_memory_for("the simulations of " + tasks + (budget.at_least ? " or more" : ""), budget.memory,
                       available, "sim --allow-large, or ");
}

}  // namespace overlap
