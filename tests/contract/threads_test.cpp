// Many simulations at once in one process: the same bits as one after the other.
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "sim/run/resolver.hpp"
#include "tests/contract/laws.hpp"

namespace overlap::test::threads_test {
namespace {

struct Simulation {
    std::string label;
    const Machine* machine = nullptr;
    TaskGraph graph;
    Costs costs;
    std::uint64_t seed = 0;

    EngineResult run(const Engine& engine) const {
        return engine.run(graph, costs, machine->resources, seed);
    }
};

/// Every schedule on every form of workload; on the switch, whose DMA queues have no order, with two seeds.
std::vector<Simulation> simulations() {
    std::vector<Simulation> result;
    for (const std::string name : {"mi300x_8", "h200_4", "mi250x_8"}) {
        const Machine& machine = law_machines().at(name);
        for_every_schedule([&](const ScheduleEntry& entry, const Workload& workload) {
            const TaskGraph graph = build(entry, workload, machine.topology);
            for (const std::uint64_t seed : {0, 1})
                if (seed == 0 || name == "h200_4")
                    result.push_back({entry.name + " | " + workload.form() + " | " + name, &machine, graph,
                                      costs_of(graph, workload, machine), seed});
        });
    }
    return result;
}

bool same_bits(const EngineResult& a, const EngineResult& b) {
    return a.tasks.size() == b.tasks.size() &&
           std::memcmp(a.tasks.data(), b.tasks.data(), a.tasks.size() * sizeof(TaskTimes)) == 0;
}

}  // namespace

TEST_CASE("simulations on four threads give the bits of one thread") {
    const std::vector<Simulation> all = simulations();
    REQUIRE(all.size() > 100);
    const std::unique_ptr<Engine> engine = make_engine("flow");
    std::vector<EngineResult> alone;
    for (const Simulation& simulation : all) alone.push_back(simulation.run(*engine));

    // Each thread does all of them with the one engine, starting elsewhere. Catch2 is for the main thread.
    std::array<std::vector<std::string>, 4> different;
    std::array<std::size_t, 4> done{};
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < different.size(); ++thread)
        threads.emplace_back([&, thread] {
            for (std::size_t i = 0; i < all.size(); ++i) {
                const std::size_t each = (i + thread * all.size() / different.size()) % all.size();
                try {
                    if (!same_bits(all[each].run(*engine), alone[each]))
                        different[thread].push_back(all[each].label);
                } catch (const std::exception& error) {
                    different[thread].push_back(all[each].label + ": " + error.what());
                }
                ++done[thread];
            }
        });
    for (std::thread& thread : threads) thread.join();

    for (std::size_t thread = 0; thread < different.size(); ++thread) {
        CHECK(done[thread] == all.size());
        CHECK(different[thread] == std::vector<std::string>());
    }
}

TEST_CASE("whole runs on four threads give the bits of one thread") {
    std::vector<Scenario> scenarios;
    for (const char* schedule : {"serial", "ring_chunked", "hetero_fused_1d", "shard_p2p"})
        for (const char* topology : {"mi300x_8", "h200_4"}) {
            RunConfig config;
            config.topology = topology;
            config.schedule = schedule;
            if (topology == std::string("h200_4")) config.seeds = 3;
            scenarios.push_back(resolve(config, shipped));
        }
    const auto answer = [](const Scenario& scenario) {
        const RunResult result = run(scenario);
        return std::array{result.makespan, result.phases.serial, result.phases.exposed_comm};
    };
    std::vector<std::array<Seconds, 3>> alone;
    for (const Scenario& scenario : scenarios) alone.push_back(answer(scenario));

    std::array<std::vector<std::array<Seconds, 3>>, 4> at_once;
    std::vector<std::thread> threads;
    for (auto& results : at_once)
        threads.emplace_back([&] {
            for (const Scenario& scenario : scenarios) results.push_back(answer(scenario));
        });
    for (std::thread& thread : threads) thread.join();
    for (const auto& results : at_once) {
        REQUIRE(results.size() == scenarios.size());
        for (std::size_t i = 0; i < results.size(); ++i)
            CHECK(std::memcmp(results[i].data(), alone[i].data(), sizeof results[i]) == 0);
    }
}

}  // namespace overlap::test::threads_test
