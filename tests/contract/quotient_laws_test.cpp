// A quotient has the times of the whole graph, to the bit, and there is none where one GPU differs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <random>

#include "sim/engine/engine.hpp"
#include "sim/pricing/effects.hpp"
#include "sim/quotient/representatives.hpp"
#include "sim/report/run/report.hpp"
#include "sim/run/experiment.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/contract/quotient_times.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::quotient_laws_test {
namespace {

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(source_folder / "configs" / folder))
        names.push_back(entry.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// All, and those that losses switch off one after another; at last transfers alone.
std::vector<Effects> sets_of_effects() {
    std::vector<Effects> sets(5);
    sets[1].contention = false;
    sets[2].contention = sets[2].launch = false;
    sets[3].contention = sets[3].launch = sets[3].packing = sets[3].decomposition = false;
    sets[4].computation = false;
    return sets;
}

struct Count {
    int quotients = 0, whole = 0;
};

/// One shipped case, unless its schedule does not serve the workload or its operands don't fit.
void compare_shipped(const std::string& topology, const ScheduleEntry& entry, const std::string& workload,
                     const std::string& agent, Count& count) {
    RunConfig config;
    config.origin = "test";
    config.topology = topology;
    config.schedule = entry.name;
    config.workload = workload;
    if (entry.takes("chunks")) config.params["chunks"] = 2;
    if (entry.takes("agent")) config.params["agent"] = agent;
    // Kernels of all 64 GPUs that share links take minutes a case.
    if (agent == "cu" && topology.ends_with("_64_rail")) config.what_if["topology.nodes"] = 2;
    Scenario scenario;
    if (error_of([&] { scenario = resolved(config); }) != "") return;
    const Machine& machine = *scenario.machine;
    const TaskGraph graph = scenario.graph();
    const CostModels models;
    Costs costs;
    if (error_of([&] { costs = price(graph, scenario.workload, machine, models, Effects()); }) != "") return;
    const std::optional<Quotient> quotient = quotient_of(graph, costs, machine.topology, machine.resources);
    ++(quotient ? count.quotients : count.whole);
    if (!quotient) return;
    for (const Effects& effects : sets_of_effects()) {
        costs = price(graph, scenario.workload, machine, models, effects);
        const Costs few = price(quotient->graph, scenario.workload, machine, models, effects);
        std::vector<TaskTimes> whole, by_class;
        const std::string error = error_of([&] { whole = times_of(graph, costs, machine.resources); });
        CHECK(error_of([&] { by_class = times_of(quotient->graph, few, quotient->resources); }).empty() ==
              error.empty());
        if (error.empty()) CHECK(same_times(whole, quotient->expanded(by_class)));
    }
}

/// A scenario with the graph of representatives only.
struct Few {
    TaskGraph graph;
    ResourceTable pooled;
    Costs costs;
};
Few few_of(const Scenario& scenario, const Rotations& rotations, const Effects& effects = {}) {
    ScheduleParams params = scenario.params;
    params.transfers.alike = rotations;
    const Machine& machine = *scenario.machine;
    TaskGraph graph = scenario.schedule->build(scenario.workload, machine.topology, params);
    ResourceTable pooled = pooled_by(rotations, graph, machine.topology, machine.resources);
    Costs costs = price(graph, scenario.workload, machine, CostModels(), effects);
    return {std::move(graph), std::move(pooled), std::move(costs)};
}

/// Whether the whole graph has a quotient; then the graph of representatives only is the same, and has the whole graph's
/// times.
bool representatives_are_right(Scenario scenario) {
    scenario.host = nullptr;  // representatives are built where one thread has enqueued everything
    const Machine& machine = *scenario.machine;
    const TaskGraph graph = scenario.of_all_gpus().graph();
    const CostModels models;
    const auto price_of = [&](const Effects& effects) {
        return price(graph, scenario.workload, machine, models, effects);
    };
    const auto quotient = quotient_of(graph, price_of({}), machine.topology, machine.resources);
    if (!quotient) return false;
    for (const Effects& effects : sets_of_effects()) {
        const Few few = few_of(scenario, quotient->rotations, effects);
        REQUIRE(is_same(*quotient, few.graph, few.costs, few.pooled));
        const std::vector<TaskTimes> times = times_of(few.graph, few.costs, few.pooled);
        CHECK(same_times(times_of(quotient->graph, few.costs, quotient->resources), times));
        CHECK(same_times(times_of(graph, price_of(effects), machine.resources), quotient->expanded(times)));
    }
    return true;
}

RunConfig config_of(const std::string& topology, const std::string& schedule, const Json& workload) {
    RunConfig config;
    config.origin = "test";
    config.topology = topology;
    config.schedule = schedule;
    config.workload = workload;
    return config;
}

Json pair_of(const std::string& collective, const std::string& order, int rows) {
    return {{"collective", collective},
            {"order", order},
            {"gemm", {{"m", rows}, {"n", 2048}, {"k", 4096}, {"dtype", "bf16"}}}};
}

}  // namespace

// With OVERLAP_ALL_SHIPPED=1 on every topology of at most 64 GPUs and every workload, which takes half an hour.
TEST_CASE("a quotient has the times of the whole graph, on shipped machines, schedules and workloads") {
    std::vector<std::string> machines{"mi300x_8", "mi250x_8", "h200_2", "h100_8", "mi300x_16", "torus_4x4"};
    std::vector<std::string> workloads{"llama3_70b_down_forward", "mixtral_8x7b_combine"};
    if (std::getenv("OVERLAP_ALL_SHIPPED") != nullptr) {
        machines = names_in("topologies");
        std::erase_if(machines, [](const std::string& name) { return shipped.topology(name).gpus() > 64; });
        workloads = names_in("workloads");
    }
    Count all;
    for (const std::string& topology : machines) {
        Count count;
        for (const ScheduleEntry& entry : schedules())
            for (const std::string& workload : workloads)
                for (const std::string& agent : agent_names) {
                    if (!entry.takes("agent") && agent != "dma") continue;
                    INFO(topology << " " << entry.name << " " << workload << " " << agent);
                    compare_shipped(topology, entry, workload, agent, count);
                }
        std::cout << topology << ": " << count.quotients << " quotients, " << count.whole
                  << " whole graphs\n";
        all.quotients += count.quotients;
        all.whole += count.whole;
    }
    CHECK(all.quotients > 150);
    CHECK(all.whole > 50);
}

TEST_CASE("a graph of representatives only is the quotient of the whole graph, and has its times") {
    int quotients = 0, whole = 0;
    for (const std::string topology :
         {"mi300x_8", "mi300x_16", "h100_64_rail", "mi300x_64_fat_tree", "mi300x_64_dragonfly"})
        for (const auto& [collective, order] : {std::pair("all_gather", "collective_first"),
                                                {"all_to_all", "collective_first"},
                                                {"all_gather", "gemm_first"},
                                                {"reduce_scatter", "gemm_first"},
                                                {"all_reduce", "gemm_first"},
                                                {"all_to_all", "gemm_first"}})
            for (const ScheduleEntry& entry : schedules())
                for (const std::string& agent : agent_names) {
                    INFO(topology << " " << entry.name << " " << collective << " " << order << " " << agent);
                    RunConfig config = config_of(topology, entry.name, pair_of(collective, order, 8192));
                    if (entry.takes("chunks")) config.params["chunks"] = 2;
                    if (entry.takes("agent")) config.params["agent"] = agent;
                    if (topology == "h100_64_rail") config.what_if["topology.nodes"] = 2;
                    if (topology == "mi300x_64_dragonfly")
                        config.what_if = {{"topology.nodes", 4}, {"topology.fabric.1.group_routers", 2}};
                    Scenario scenario;
                    if (error_of([&] { scenario = resolved(config); }) != "") continue;
                    if (!entry.by_representatives(scenario.workload, scenario.params)) continue;
                    ++(representatives_are_right(scenario) ? quotients : whole);
                }
    std::cout << "representatives: " << quotients << " quotients, " << whole << " whole graphs\n";
    CHECK(quotients > 40);
}

TEST_CASE("a run of representatives only has the numbers of the run of all GPUs, to the bit") {
    Resolver resolver(shipped);
    int alike = 0, different = 0;
    const auto numbers = [](const Scenario& scenario) {
        Json json = to_json(run(scenario, {.record = false}));
        json.erase("wall_ms");
        return json;
    };
    for (const std::string topology : {"mi300x_8", "mi250x_8", "mi300x_16", "h200_8"})
        for (const std::string schedule : {"uniform_fused_1d", "hetero_unfused_2d", "shard_p2p", "serial"})
            for (const Json& params :
                 {Json{{"agent", "cu"}}, Json{{"agent", "dma"}}, Json{{"order", "ascending"}}})
                for (const auto& [collective, order] : {std::pair("all_gather", "collective_first"),
                                                        {"reduce_scatter", "gemm_first"},
                                                        {"all_reduce", "gemm_first"}})
                    for (const auto& [rows, chunks] :
                         {std::pair(8192, 1), {16384, 3}, {8192, 8}, {8200, 8}}) {
                        RunConfig config = config_of(topology, schedule, pair_of(collective, order, rows));
                        config.params = params;
                        if (find_schedule(schedule).takes("chunks")) config.params["chunks"] = chunks;
                        INFO(topology << " " << schedule << " " << config.params << " " << collective << " "
                                      << rows);
                        const Scenario scenario = resolver.resolve_for_numbers(config);
                        const std::optional<Rotations>& rotations = scenario.params.transfers.alike;
                        ++(rotations ? alike : different);
                        if (!rotations) continue;
                        const Scenario whole = resolver.resolve(config);
                        CHECK(!whole.params.transfers.alike);
                        CHECK(scenario.graph().size() * static_cast<std::size_t>(rotations->of_orbit()) ==
                              whole.graph().size());
                        CHECK(numbers(scenario) == numbers(whole));
                    }
    std::cout << "numbers of representatives: " << alike << " runs, " << different << " of all GPUs\n";
    CHECK(alike > 60);
    CHECK(different > 60);
}

TEST_CASE("ranks that are alike on a small machine are alike on the large one") {
    struct Case {
        std::string topology;
        int nodes, representatives;
        Json what_if;
    };
    const std::string fabric = "topology.fabric.1.";
    for (const Case& one :
         {Case{"mi300x_1024_rail", 24, 1, Json::object()},
          Case{"mi300x_64_dragonfly", 24, 16, {{fabric + "global_links", 11}}},
          // Leaves of eight nodes, and of a NIC of each of eight.
          Case{"mi300x_64_fat_tree", 24, 8, {{fabric + "leaf_ports", 64}, {fabric + "spines", 32}}},
          Case{"mi300x_64_fat_tree",
               24,
               8,
               {{fabric + "leaves", "rails"}, {fabric + "leaf_ports", 8}, {fabric + "spines", 8}}},
          // One link between two groups of four nodes.
          Case{"mi300x_64_dragonfly", 36, 32, {{fabric + "group_routers", 8}, {fabric + "global_links", 1}}}})
        for (const std::string schedule : {"hierarchical_chunked", "serial"}) {
            INFO(one.topology << " " << one.nodes << " " << schedule);
            RunConfig config =
                config_of(one.topology, schedule, pair_of("all_gather", "collective_first", 256 * one.nodes));
            config.what_if = one.what_if;
            config.what_if["topology.nodes"] = one.nodes;
            const Scenario scenario = resolved(config);
            REQUIRE(scenario.params.transfers.alike);
            CHECK(scenario.params.transfers.alike->representatives() == one.representatives);
            CHECK(scenario.params.transfers.alike->gpus() == 8 * one.nodes);
            CHECK(representatives_are_right(scenario));
            CHECK(run(scenario).makespan == run(scenario.of_all_gpus()).makespan);
        }
}

TEST_CASE("nodes stay alike where orders are drawn, launches queue, and kernels race for compute units") {
    for (const Json& params : {Json{{"agent", "dma"}, {"transfer", "push"}, {"chunks", 1}},
                               Json{{"agent", "dma"}, {"transfer", "push"}, {"chunks", 2}},
                               Json{{"agent", "dma"}, {"transfer", "pull"}, {"chunks", 2}},
                               Json{{"agent", "cu"}, {"transfer", "push"}, {"chunks", 2}}}) {
        INFO(params);
        RunConfig config =
            config_of("h100_32_rail", "hetero_fused_1d", pair_of("all_to_all", "collective_first", 8192));
        config.params = params;
        const Scenario scenario = resolved(config);
        const TaskGraph graph = scenario.graph();
        const Experiment few(scenario, graph);
        REQUIRE(few.simulated_gpus() == 8);  // one node of four
        for (const std::uint64_t seed : {0, 1, 2}) {
            const EngineResult whole =
                make_engine(default_engine)->run(graph, few.costs(seed), scenario.machine->resources, seed);
            CHECK(few.ends(effects_of(scenario), seed).all == whole.makespan);
        }
    }
}

TEST_CASE("GPUs that are degraded in every node are alike from node to node") {
    TemporaryFolder folder;
    Json topology = shipped.topology_file("mi300x_1024_rail").json;
    topology["nodes"] = 24;
    int files = 0;
    const auto scenario_with = [&](const Json& degraded) {
        topology["degraded"] = Json::array({degraded});
        const std::string file = (folder.path() / (std::to_string(++files) + ".json")).string();
        std::ofstream(file) << topology;
        return resolved(
            config_of(file, "hierarchical_chunked", pair_of("all_gather", "collective_first", 6144)));
    };
    const Json half{{"value", 0.5}, {"source", "test"}};
    for (const Json& degraded :
         {Json{{"gpu", 3}, {"gemm_speed", half}}, Json{{"gpu", 3}, {"to", 5}, {"links", half}},
          Json{{"gpu", 3}, {"links", half}}, Json{{"gpu", 3}, {"nic", half}}}) {
        INFO(degraded);
        const Scenario scenario = scenario_with(degraded);
        REQUIRE(scenario.params.transfers.alike);
        CHECK(scenario.params.transfers.alike->representatives() == 8);
        CHECK(run(scenario).makespan == run(scenario.of_all_gpus()).makespan);
        for (const int node : {1, 20}) {
            Json one = degraded;
            one["node"] = node;
            CHECK_FALSE(scenario_with(one).params.transfers.alike);
        }
    }
}

TEST_CASE("ranks that are not quite alike are all built") {
    const auto representatives = [](const std::string& topology, int nodes, int rows,
                                    Json what_if = Json::object()) {
        RunConfig config =
            config_of(topology, "hierarchical_chunked", pair_of("all_gather", "collective_first", rows));
        config.what_if = std::move(what_if);
        config.what_if["topology.nodes"] = nodes;
        const std::optional<Rotations> alike = resolved(config).params.transfers.alike;
        return alike ? alike->representatives() : 0;
    };
    CHECK(representatives("mi300x_1024_rail", 24, 6144) == 1);
    CHECK(representatives("mi300x_1024_rail", 24, 6145) == 0);   // a longer shard
    CHECK(representatives("mi300x_1024_rail", 16, 6144) == 0);   // few GPUs
    CHECK(representatives("mi300x_64_fat_tree", 24, 6144) > 1);  // two nodes a leaf
    CHECK(representatives("mi300x_64_fat_tree", 24, 6144, {{"topology.fabric.1.spines", 7}}) == 0);
    // Destinations are dealt to spines by their numbers: these must not begin anew in the middle of the spines.
    const auto on_tree = [&](int nodes, int spines) {
        return representatives("mi300x_64_fat_tree", nodes, 256 * nodes,
                               {{"topology.fabric.1.leaf_ports", 8}, {"topology.fabric.1.spines", spines}});
    };
    CHECK(on_tree(24, 16) > 0);
    CHECK(on_tree(25, 16) == 0);
    CHECK(on_tree(24, 128) == 0);
    // A graph that is not quite the quotient.
    const Scenario scenario = resolved(
        config_of("mi300x_16", "hierarchical_chunked", pair_of("all_gather", "collective_first", 8192)));
    const Machine& machine = *scenario.machine;
    const TaskGraph whole = scenario.graph();
    const Costs costs = price(whole, scenario.workload, machine, CostModels(), Effects());
    const auto quotient = quotient_of(whole, costs, machine.topology, machine.resources);
    REQUIRE(quotient);
    const Few few = few_of(scenario, quotient->rotations);
    const auto changed = [&](const std::function<void(TaskId, Task&)>& task, bool skips_an_edge) {
        TaskGraph graph;
        for (TaskId id = 0; id < few.graph.size(); ++id) {
            Task copy = few.graph[id];
            task(id, copy);
            graph.add(copy);
        }
        for (std::size_t i = skips_an_edge; i < few.graph.edge_count(); ++i)
            graph.add_edge(few.graph.edge(i));
        return graph;
    };
    const auto is_same_as = [&](const TaskGraph& graph, const ResourceTable& pooled) {
        return is_same(*quotient, graph, few.costs, pooled);
    };
    const auto nothing = [](TaskId, Task&) {};
    CHECK(is_same_as(changed(nothing, false), few.pooled));
    CHECK_FALSE(is_same_as(changed(nothing, true), few.pooled));
    CHECK_FALSE(
        is_same_as(changed([](TaskId id, Task& task) { task.priority += id == 3; }, false), few.pooled));
    CHECK_FALSE(is_same_as(few.graph, machine.resources));
}

TEST_CASE("a rotation maps a GPU to its representative, and keeps distances") {
    const Topology topology = topology_of(6, group("full_mesh"), 4);
    for (const auto& [nodes, locals] : {std::pair(1, 1), {2, 3}, {4, 1}, {1, 6}}) {
        const Rotations rotations(topology, nodes, locals);
        CHECK(rotations.of_orbit() == 24 / (nodes * locals));
        for (int gpu = 0; gpu < rotations.gpus(); ++gpu) {
            const int first = rotations.representative(gpu);
            CHECK(first <= gpu);
            CHECK(rotations.representative(first) == first);
            CHECK(rotations.seen_from(gpu, gpu) == first);
            std::vector<bool> seen(24);
            for (int other = 0; other < rotations.gpus(); ++other) {
                const int as = rotations.seen_from(gpu, other);
                seen[static_cast<std::size_t>(as)] = true;
                CHECK(rotations.representative(as) == rotations.representative(other));
                CHECK(rotations.seen_from(first, other) == other);
                // In the same node, and as far behind.
                CHECK((as / 6 == first / 6) == (other / 6 == gpu / 6));
                CHECK((as % 6 - first % 6 + 6) % 6 == (other % 6 - gpu % 6 + 6) % 6);
            }
            CHECK(std::count(seen.begin(), seen.end(), true) == 24);
        }
    }
}

}  // namespace overlap::test::quotient_laws_test
