// The native engine against SimGrid, its independent reference. Where SimGrid's exact solver gives up, its
// answer is an approximation and decides nothing; the laws of tests/unit/fair_share_test.cpp hold there all
// the same.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <random>

#include "sim/effects.hpp"
#include "sim/engine/engine.hpp"
#include "sim/run.hpp"
#include "tests/test_support.hpp"

using namespace overlap;
using namespace overlap::test;

namespace {

constexpr double tolerance = 1e-6;

struct RandomCase {
    TaskGraph graph;
    std::vector<Cost> costs;
};

const ResourceTable& mesh() {
    static const ResourceTable table(topology_of(3, group("full_mesh")));
    return table;
}

/// The first `size` tasks of the graph that a seed stands for: streams, edges, phases, queues, holds, shared
/// resources.
RandomCase random_case(unsigned seed, unsigned size) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    // A third of the latencies is zero; the rest is arbitrary, so that no two instants coincide by chance: which of
    // two equal instants comes first is a matter of rounding on SimGrid's floating clock.
    const auto microseconds_below = [&](unsigned n) {
        return microseconds(below(3) == 0 ? 0.0 : 1e-6 * n * below(1'000'000));
    };
    RandomCase result;
    for (unsigned id = 0; id < size; ++id) {
        Task task;
        task.work = GemmShape{1, 1, 1};
        task.gpu = static_cast<int>(below(3));
        task.stream = static_cast<int>(below(4));
        Cost cost;
        cost.launch = microseconds_below(5);
        cost.launch_ahead = below(2) == 0;
        cost.setup = microseconds_below(3);
        cost.completion = microseconds_below(3);
        cost.handoff = microseconds_below(3);
        cost.body = microseconds_below(200);
        // At most two shared resources, so that the reference's solver rarely gives up.
        for (unsigned d = below(3); d > 0; --d) {
            const ResourceId resource = below(static_cast<unsigned>(mesh().size()));
            cost.demands.push_back({resource, mesh()[resource].capacity * 1e-6 * (1 + 1e-4 * below(1'000'000))});
        }
        if (below(4) == 0) cost.queue = mesh().dma_engine(task.gpu, (task.gpu + 1) % 3);
        if (below(6) == 0) cost.holds.push_back({mesh().compute_units(task.gpu), 1.0 + below(20)});
        std::vector<TaskId> after;
        for (unsigned e = id == 0 ? 0 : below(3); e > 0; --e) after.push_back(below(id));
        std::sort(after.begin(), after.end());
        after.erase(std::unique(after.begin(), after.end()), after.end());
        result.graph.add(task, after);
        result.costs.push_back(std::move(cost));
    }
    return result;
}

struct Agreement {
    bool decided = false;  ///< SimGrid kept to the contract
    double error = 0;      ///< largest difference of an end, in shares of the makespan
    EngineResult flow;
};

Agreement compare(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources) {
    const EngineResult reference = make_engine("simgrid")->run(graph, costs, resources);
    Agreement result{reference.approximation.empty(), 0, make_engine("flow")->run(graph, costs, resources)};
    for (TaskId id = 0; id < graph.size(); ++id)
        result.error =
            std::max(result.error, std::abs((result.flow.tasks[id].end - reference.tasks[id].end).si()));
    if (reference.makespan.si() > 0) result.error /= reference.makespan.si();
    return result;
}

unsigned random_graphs() {
    const char* given = std::getenv("OVERLAP_RANDOM_GRAPHS");
    return given == nullptr ? 10000 : static_cast<unsigned>(std::stoul(given));
}

}  // namespace

TEST_CASE("the engines agree on random task graphs") {
    unsigned decided = 0, undecided = 0;
    for (unsigned seed = 0; seed < random_graphs(); ++seed) {
        const unsigned size = 3 + seed % 30;
        const RandomCase whole = random_case(seed, size);
        const Agreement both = compare(whole.graph, whole.costs, mesh());
        ++(both.decided ? decided : undecided);

        std::vector<Seconds> bodies;
        for (const Cost& cost : whole.costs) bodies.push_back(isolated_body(cost, mesh()));
        INFO("seed " << seed);
        REQUIRE(both.flow.makespan.si() >= whole.graph.critical_path(bodies).si() * (1 - 1e-9));
        for (TaskId id = 0; id < size; ++id) {  // nothing starves, nothing is faster than alone
            const double body =
                (both.flow.tasks[id].end - whole.costs[id].completion - both.flow.tasks[id].body).si();
            REQUIRE(body >= bodies[id].si() * (1 - 1e-9) - 2e-15);
        }
        if (!both.decided || both.error <= tolerance) continue;
        for (unsigned smaller = 1; smaller <= size; ++smaller) {
            const RandomCase part = random_case(seed, smaller);
            const Agreement small = compare(part.graph, part.costs, mesh());
            if (!small.decided || small.error <= tolerance) continue;
            FAIL("seed " << seed << ", first " << smaller << " tasks: ends differ by " << small.error);
        }
    }
    std::cout << "engines compared on " << decided << " random graphs; SimGrid gave up on " << undecided
              << '\n';
    CHECK(decided > 9 * undecided);
}

TEST_CASE("the engines agree on shipped machines, schedules and workloads") {
    unsigned decided = 0, undecided = 0;
    const std::vector<std::string> machines{"mi300x_8", "mi250x_8", "h200_4", "ring_8", "mi300x_16"};
    for (const std::string& topology : machines)
        for (const ScheduleEntry& entry : schedules())
            for (const std::string workload :
                 {"llama3_70b_qkv_forward", "llama3_70b_down_forward", "mixtral_8x7b_combine"}) {
                RunConfig config;
                config.origin = "test";
                config.topology = topology;
                config.schedule = entry.name;
                config.workload = workload;
                if (entry.name != "serial" && entry.name != "shard_p2p" && entry.name != "shard_direct" &&
                    entry.name != "concurrent")
                    config.params["chunks"] = 2;
                const Json json = read_json_file(shipped.find("workloads", workload));
                if (!entry.handles(read_workload({json, workload}))) continue;
                const Scenario scenario = resolve(config, shipped);
                const TaskGraph graph = scenario.graph();
                const std::vector<Cost> costs =
                    price(graph, scenario.workload, scenario.machine, CostModels(), Effects());
                const Agreement both = compare(graph, costs, scenario.machine.resources);
                ++(both.decided ? decided : undecided);
                INFO(topology << " " << entry.name << " " << workload);
                if (both.decided) CHECK(both.error <= tolerance);
            }
    std::cout << "engines compared on " << decided << " shipped cases; SimGrid gave up on " << undecided
              << '\n';
    CHECK(decided >= 100);
}
