// How fast the simulator is. scripts/bench runs it.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "sim/core/allocation.hpp"
#include "sim/quotient/representatives.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/test_support.hpp"

namespace overlap::test {
namespace {

RunConfig config_of(const std::string& topology, const std::string& schedule, const Json& params,
                    const Json& workload = default_workload) {
    RunConfig config;
    config.origin = "bench";
    config.topology = topology;
    config.schedule = schedule;
    config.params = params;
    config.workload = workload;
    return config;
}

Scenario scenario_of(const std::string& topology, const std::string& schedule, const Json& params,
                     const Json& workload = default_workload) {
    return resolve(config_of(topology, schedule, params, workload), shipped);
}

/// All-to-all before a GEMM of 16 tokens a chunk and peer: as many chunks as rows allow.
Json long_pipeline(int chunks) {
    return {{"collective", "all_to_all"},
            {"order", "collective_first"},
            {"gemm", {{"m", 8 * chunks * 16}, {"n", 2048}, {"k", 7168}, {"dtype", "bf16"}}}};
}

/// As a sweep resolves it: where ranks are alike, with the tasks of representatives only.
Scenario of_representatives(const std::string& topology, const std::string& schedule, const Json& params,
                            const Json& workload = default_workload) {
    return Resolver(shipped).resolve_for_numbers(config_of(topology, schedule, params, workload));
}

/// Task graph, costs, and one simulation of them.
void simulate(benchmark::State& state, const Scenario& scenario, const std::string& engine) {
    const CostModels models;
    const Machine& machine = *scenario.machine;
    const std::optional<Rotations>& alike = scenario.params.transfers.alike;
    std::size_t tasks = 0;
    for (auto _ : state) {
        const TaskGraph graph = scenario.graph();
        const Costs costs = price(graph, scenario.workload, machine, models, Effects());
        std::optional<ResourceTable> pooled;
        if (alike) pooled = pooled_by(*alike, graph, machine.topology, machine.resources);
        benchmark::DoNotOptimize(
            make_engine(engine)->run(graph, costs, pooled ? *pooled : machine.resources));
        tasks = graph.size();
    }
    state.counters["tasks"] = static_cast<double>(tasks);
    state.counters["time_a_task"] =
        benchmark::Counter(static_cast<double>(tasks),
                           benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// With baseline, losses and observations, as `sim` and `sim batch` do.
void whole_run(benchmark::State& state, const Scenario& scenario) {
    for (auto _ : state) benchmark::DoNotOptimize(run(scenario));
    state.counters["tasks"] = static_cast<double>(scenario.graph().size());
}

const Scenario& eight_by_eight() {
    static const Scenario scenario = scenario_of("mi300x_8", "hetero_fused_1d", {{"chunks", 8}});
    return scenario;
}

/// A config of a sweep: its machine is there already.
void resolve_8x8(benchmark::State& state) {
    Resolver resolver(shipped);
    const RunConfig config = config_of("mi300x_8", "hetero_fused_1d", {{"chunks", 8}});
    for (auto _ : state) benchmark::DoNotOptimize(resolver.resolve(config));
}
void resolve_what_if_8x8(benchmark::State& state) {
    Resolver resolver(shipped);
    RunConfig config = config_of("mi300x_8", "hetero_fused_1d", {{"chunks", 8}}, "ficco_g1");
    config.what_if = {{"topology.fabric.0.bandwidth_GBps", "2x"}, {"device.dma.peer_engines", 4}};
    for (auto _ : state) benchmark::DoNotOptimize(resolver.resolve(config));
}
void resolve_from_files_8x8(benchmark::State& state) {
    const RunConfig config = config_of("mi300x_8", "hetero_fused_1d", {{"chunks", 8}});
    for (auto _ : state) benchmark::DoNotOptimize(resolve(config, shipped));
}

void graph_8x8(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(eight_by_eight().graph());
}
void price_8x8(benchmark::State& state) {
    const Scenario& scenario = eight_by_eight();
    const TaskGraph graph = scenario.graph();
    const CostModels models;
    for (auto _ : state)
        benchmark::DoNotOptimize(price(graph, scenario.workload, *scenario.machine, models, Effects()));
}
void engine_8x8(benchmark::State& state) {
    const Scenario& scenario = eight_by_eight();
    const TaskGraph graph = scenario.graph();
    const Costs costs = price(graph, scenario.workload, *scenario.machine, CostModels(), Effects());
    const auto engine = make_engine("flow");
    for (auto _ : state) benchmark::DoNotOptimize(engine->run(graph, costs, scenario.machine->resources));
}
void simulate_8x8_flow(benchmark::State& state) {
    simulate(state, eight_by_eight(), "flow");
}
void simulate_8x8_representatives(benchmark::State& state) {
    simulate(state, of_representatives("mi300x_8", "hetero_fused_1d", {{"chunks", 8}}), "flow");
}
void simulate_8x8_simgrid(benchmark::State& state) {
    simulate(state, eight_by_eight(), "simgrid");
}
void whole_run_8x8(benchmark::State& state) {
    whole_run(state, eight_by_eight());
}
/// A point of a sweep: config to numbers, with machine and baseline of the points before.
void design_point(benchmark::State& state, const RunConfig& config) {
    Resolver resolver(shipped);
    Baselines baselines;
    for (auto _ : state)
        benchmark::DoNotOptimize(
            run(resolver.resolve_for_numbers(config), {.record = false, .baselines = &baselines}));
    state.counters["points"] = benchmark::Counter(1, benchmark::Counter::kIsIterationInvariantRate);
}
void design_point_8x8(benchmark::State& state, const std::string& schedule, const std::string& agent) {
    design_point(state, config_of("mi300x_8", schedule, {{"chunks", 8}, {"agent", agent}}));
}
void design_point_chunks(benchmark::State& state) {
    design_point(state, config_of("mi300x_8", "hetero_fused_1d", {{"chunks", state.range(0)}}));
}
void design_point_gpus(benchmark::State& state) {
    const int gpus = static_cast<int>(state.range(0));
    const std::string topology = gpus == 64 ? "mesh_64" : "mi300x_" + std::to_string(gpus);
    design_point(
        state, config_of(topology, gpus == 16 ? "hierarchical_chunked" : "hetero_fused_1d", {{"chunks", 8}}));
}
void design_point_15_orders(benchmark::State& state) {
    design_point(state, config_of("h200_" + std::to_string(state.range(0)), "hetero_fused_1d",
                                  {{"chunks", 8}, {"transfer", "push"}}));
}

void simulate_all_to_all_pipeline(benchmark::State& state) {
    const auto chunks = static_cast<int>(state.range(0));
    simulate(state, scenario_of("mi300x_8", "uniform_fused_1d", {{"chunks", chunks}}, long_pipeline(chunks)),
             "flow");
}
void simulate_representatives_pipeline(benchmark::State& state) {
    const auto chunks = static_cast<int>(state.range(0));
    simulate(state,
             of_representatives("mi300x_8", "uniform_fused_1d", {{"chunks", chunks}}, long_pipeline(chunks)),
             "flow");
}
void simulate_64x8_full_mesh(benchmark::State& state) {
    simulate(state, scenario_of("mesh_64", "hetero_fused_1d", {{"chunks", 8}}), "flow");
}

const Scenario& thousand_gpus() {
    static const Scenario scenario = scenario_of("mi300x_1024_rail", "hierarchical_chunked", {{"chunks", 4}});
    return scenario;
}
void simulate_1024_gpus(benchmark::State& state) {
    simulate(state, thousand_gpus(), "flow");
}
/// As where one of them is different: the tasks of all GPUs.
void simulate_1024_different_gpus(benchmark::State& state) {
    simulate(state, thousand_gpus().of_all_gpus(), "flow");
}
void whole_run_1024_gpus(benchmark::State& state) {
    whole_run(state, thousand_gpus());
}

/// Every schedule that serves an all-gather before a GEMM, with either agent.
void register_design_points() {
    const Workload workload = scenario_of("mi300x_8", "serial", Json::object()).workload;
    for (const ScheduleEntry& entry : schedules())
        for (const std::string& agent : agent_names)
            if (entry.handles(workload) && std::ranges::count(entry.parameters, "chunks") > 0)
                benchmark::RegisterBenchmark(("design_point_8x8/" + entry.name + "/" + agent).c_str(),
                                             [name = entry.name, agent](benchmark::State& state) {
                                                 design_point_8x8(state, name, agent);
                                             })
                    ->Unit(benchmark::kMicrosecond);
}

BENCHMARK(resolve_8x8)->Unit(benchmark::kMicrosecond);
BENCHMARK(resolve_what_if_8x8)->Unit(benchmark::kMicrosecond);
BENCHMARK(resolve_from_files_8x8)->Unit(benchmark::kMicrosecond);
BENCHMARK(graph_8x8)->Unit(benchmark::kMicrosecond);
BENCHMARK(price_8x8)->Unit(benchmark::kMicrosecond);
BENCHMARK(engine_8x8)->Unit(benchmark::kMicrosecond);
BENCHMARK(simulate_8x8_flow)->Unit(benchmark::kMicrosecond);
BENCHMARK(simulate_8x8_representatives)->Unit(benchmark::kMicrosecond);
BENCHMARK(simulate_8x8_simgrid)->Unit(benchmark::kMicrosecond);
BENCHMARK(whole_run_8x8)->Unit(benchmark::kMicrosecond);
BENCHMARK(design_point_chunks)->RangeMultiplier(2)->Range(2, 64)->Unit(benchmark::kMicrosecond);
BENCHMARK(design_point_gpus)->Arg(8)->Arg(16)->Arg(64)->Unit(benchmark::kMicrosecond);
BENCHMARK(design_point_15_orders)
    ->Arg(4)
    ->Arg(8)
    ->Unit(benchmark::kMicrosecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK(simulate_all_to_all_pipeline)->RangeMultiplier(4)->Range(16, 4096)->Unit(benchmark::kMillisecond);
BENCHMARK(simulate_representatives_pipeline)
    ->RangeMultiplier(4)
    ->Range(16, 4096)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(simulate_64x8_full_mesh)->Unit(benchmark::kMillisecond);
BENCHMARK(simulate_1024_gpus)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(simulate_1024_different_gpus)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(whole_run_1024_gpus)->Unit(benchmark::kMillisecond)->Iterations(1)->UseRealTime();

}  // namespace
}  // namespace overlap::test

int main(int argc, char** argv) {
    overlap::keep_freed_memory();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    overlap::test::register_design_points();
    benchmark::RunSpecifiedBenchmarks();
}
