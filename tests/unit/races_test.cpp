// Do GEMMs and copy kernels race for compute units, and only where they do so on GPUs?
#include "sim/pricing/races.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/run/experiment.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/device_launch.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::races_test {

namespace {

Scenario scenario_of(const std::string& agent, const std::string& collective, double gemm_first,
                     int seeds = 15) {
    const Json config{
        {"topology", "h200_2"},
        {"schedule", "shard_p2p"},
        {"params", {{"agent", agent}}},
        {"seeds", seeds},
        {"what_if", {{"device.launch.gemm_first", gemm_first}}},
        {"workload",
         {{"collective", collective}, {"gemm", {{"m", 8192}, {"n", 2560}, {"k", 8192}, {"dtype", "bf16"}}}}}};
    return resolved(read_run_config(config, "races"));
}

Prediction predicted(const std::string& agent, const std::string& collective, double gemm_first) {
    return predict(scenario_of(agent, collective, gemm_first));
}

/// Share of the GEMMs that race which are second, over many executions.
double second(double gemm_first) {
    const Scenario scenario = scenario_of("cu", "reduce_scatter", gemm_first);
    const TaskGraph graph = scenario.graph();
    const Costs costs = price(graph, scenario.workload, *scenario.machine,
                              CostModels(scenario.settings.cost_models), Effects());
    const Races races(graph, costs, *scenario.machine);
    const int executions = 2000, gemms = 2;  // one on each GPU
    double moved = 0;
    for (std::uint64_t seed = 0; seed < executions; ++seed) {
        const Costs drawn = races.drawn(costs, seed);
        for (TaskId id = 0; id < graph.size(); ++id) {
            if (graph[id].kind() != TaskKind::gemm || drawn[id].launch == costs[id].launch) continue;
            CHECK((drawn[id].launch.time + drawn[id].body).si() ==
                  Approx((costs[id].launch.time + costs[id].body).si()));
            // Alone, no demand makes the GEMM longer than its body.
            for (const Demand& demand : drawn[id].demands)
                CHECK(demand.amount <=
                      Approx(drawn[id].body.si() * scenario.machine->resources[demand.resource].capacity));
            ++moved;
        }
    }
    return moved / (executions * gemms);
}

}  // namespace

TEST_CASE("each GEMM that races a copy kernel is second as often as measured") {
    CHECK(second(1) == 0);
    CHECK(second(0) == 1);
    CHECK(second(0.53) == Approx(0.47).margin(0.03));
}

TEST_CASE("makespans of both outcomes of a race come out, and the median is that of the slower") {
    const Prediction gemms = predicted("cu", "reduce_scatter", 1),
                     copies = predicted("cu", "reduce_scatter", 0);
    CHECK(gemms.seeds == 1);
    CHECK(gemms.makespan.si() < 0.95 * copies.makespan.si());
    const Prediction both = predicted("cu", "reduce_scatter", 0.5);
    CHECK(both.seeds == 15);
    CHECK(both.p10.si() == Approx(gemms.makespan.si()));
    // Draws by which the GPUs differ are up to a microsecond longer or shorter than copies first on both.
    CHECK(both.p90.si() == Approx(copies.makespan.si()).margin(1e-6));
    CHECK(both.makespan.si() == Approx(copies.makespan.si()).epsilon(0.02));  // the last GPU decides
}

TEST_CASE("of more than four GPUs GEMMs are first") {
    Json config = scenario_of("cu", "reduce_scatter", 0.5).config();
    config["topology"] = "h200_8";
    CHECK(predict(resolved(read_run_config(config, "races"))).seeds == 1);
}

TEST_CASE("nothing races where copies wait for no GEMM or are by DMA") {
    for (const auto& [agent, collective] :
         {std::pair("cu", "all_gather"), std::pair("dma", "reduce_scatter")}) {
        INFO(agent << " " << collective);
        const Prediction gemms = predicted(agent, collective, 1), either = predicted(agent, collective, 0.5);
        CHECK(either.seeds == gemms.seeds);
        CHECK(either.makespan == gemms.makespan);
        CHECK(predicted(agent, collective, 0).makespan == gemms.makespan);
    }
}

TEST_CASE(
    "a sum or a local copy that is ready with a GEMM is ahead of it, and the GEMM waits less than it takes") {
    const Scenario scenario = scenario_of("dma", "reduce_scatter", 0.5);
    const Work local =
        GENERATE(Work(ReduceWork{Bytes(16e6), 2}), Work(LocalCopyWork{Bytes(16e6), Bytes(16e6)}));
    const auto end_of_gemms = [&](bool beside) {
        TaskGraph graph;
        const Task gemm{GemmShape{2048, 4096, 4096}, 0, compute_stream};
        const TaskId first = graph.add(gemm);
        const TaskId between = beside ? graph.add(Task{local, 0, local_stream}, {first}) : first;
        const TaskId second = graph.add(gemm);
        const EngineResult result = Experiment(scenario, graph).median_run().second;
        if (beside) CHECK(result.tasks[between].end < result.tasks[second].end);
        return result.tasks[second].end;
    };
    TaskGraph alone;
    alone.add(Task{local, 0, local_stream});
    const Seconds lost = end_of_gemms(true) - end_of_gemms(false),
                  event = scenario.machine->topology.device().launch->event;
    const Seconds taken = Experiment(scenario, alone).median_run().second.makespan;
    CHECK(lost > event);
    CHECK(lost < taken + event);
}

TEST_CASE("of a GEMM and a library's collective that wait for nothing, the one enqueued first is first") {
    const Json gathered{
        {"name", "c"}, {"type", "collective"}, {"collective", "all_gather"}, {"bytes", 536870912}};
    const Json gemm{{"name", "g"}, {"type", "gemm"}, {"m", 8192},
                    {"n", 8192},   {"k", 8192},      {"dtype", "fp16"}};
    const auto makespan = [](const Json& first, const Json& second) {
        const Json config{{"topology", "h100_8"},
                          {"schedule", "concurrent"},
                          {"params", {{"algorithm", "library"}}},
                          {"workload", {{"operators", {first, second}}}}};
        return makespan_of(resolved(read_run_config(config, "races")));
    };
    // Behind a persistent GEMM the collective waits for its last round.
    CHECK(makespan(gathered, gemm) < 0.7 * makespan(gemm, gathered));
    // PyTorch pull request 172714, whose script enqueues the collective first: 2.02 ms.
    CHECK(to_microseconds(makespan(gathered, gemm)) == Approx(2020).epsilon(0.12));
}

}  // namespace overlap::test::races_test
