// Whole collectives by each set of DMA commands: closed forms of their times, and of what they cost.
#include <catch2/catch.hpp>

#include "models/cost_model_registry.hpp"
#include "sim/collectives/collective_algorithm.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/device_dma.hpp"
#include "tests/any_engine.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::dma_commands_test {

using Catch::Contains;

namespace {

/// Four GPUs, every pair on a 10 GB/s link of 1 µs; command, schedule, start and completion 1 µs each. A GPU
/// issues copies one at a time, 2 µs each, and sees their ends half a microsecond apart.
Machine mesh() {
    DeviceSpec device = round_device();
    device.dma->peer_engines = 3;
    device.dma->phases.queued_launch = microseconds(2);
    device.dma->phases.completions_apart = microseconds(0.5);
    device.dma->commands = {microseconds(0.25), microseconds(0.125), microseconds(0.5),
                            gigabytes_per_second(8)};
    return machine_of(topology_of(4, group("full_mesh"), 1, "", device));
}

TransferOptions options(DmaCommands commands, bool prelaunch = false, Direction direction = Direction::push) {
    TransferOptions result;
    result.direction = direction;
    result.commands = commands;
    result.prelaunch = prelaunch;
    return result;
}

/// Makespan in µs of a direct collective with pieces of `bytes` bytes.
double time_us(const std::string& engine, CollectiveKind kind, double piece, const TransferOptions& how,
               const Machine& machine = mesh()) {
    TaskGraph graph;
    Transfers transfers(graph, machine.topology, how);
    const auto ranks = static_cast<std::size_t>(machine.topology.gpus());
    collective_algorithm("direct").build({kind, static_cast<double>(ranks) * Bytes(piece)}, RankTasks(ranks),
                                         transfers);
    std::vector<Cost> costs;
    for (TaskId id = 0; id < graph.size(); ++id) costs.push_back(CostModels().cost(graph[id], machine));
    return to_microseconds(make_engine(engine)->run(graph, costs, machine.resources).makespan);
}

constexpr auto gather = CollectiveKind::all_gather, all_to_all = CollectiveKind::all_to_all;
constexpr double small = 10'000;  ///< bytes: 1 µs on a link, or an engine

double sum_of(const Cost& cost, ResourceId resource) {
    double sum = 0;
    for (const Demand& demand : cost.demands) sum += demand.resource == resource ? demand.amount : 0;
    return sum;
}

RunConfig on_mesh(const std::string& kind, double bytes, Json params) {
    RunConfig config;
    config.origin = "test";
    config.topology = "mi300x_8";
    config.schedule = "serial";
    config.params = std::move(params);
    config.workload = {
        {"operators", {{{"name", "c"}, {"type", "collective"}, {"collective", kind}, {"bytes", bytes}}}}};
    return config;
}

double mi300x_us(const std::string& kind, double bytes, const Json& params) {
    return to_microseconds(run(resolved(on_mesh(kind, bytes, params))).makespan);
}

std::string refused(const std::string& kind, const Json& params) {
    return error_of([&] { run(resolved(on_mesh(kind, 1024, params))); });
}

}  // namespace

TEST_CASE("copies of a GPU are issued one at a time, and pre-launched ones set going together") {
    const std::string engine = any_engine();
    for (const Direction direction : {Direction::push, Direction::pull}) {
        // Issued until 2, 4 and 6; the last: start 1, link 1, bytes 1, completion 1.
        CHECK(time_us(engine, gather, small, options(DmaCommands::copy, false, direction)) == Approx(10));
        // All: release 0.25, start 1, link 1, bytes 1, completion 1: 4.25; their ends are seen 0.5 apart.
        CHECK(time_us(engine, gather, small, options(DmaCommands::copy, true, direction)) == Approx(5.25));
    }
}

TEST_CASE("copies on one stream a GPU go one after another, in rotation") {
    // One engine a GPU. Each of three copies: command, schedule, start and link 1 µs each, bytes 1, completion 1.
    DeviceSpec device = round_device();
    device.dma->peer_engines = 1;
    const Machine machine = machine_of(topology_of(4, group("full_mesh"), 1, "", device));
    const std::string engine = any_engine();
    for (const Direction direction : {Direction::push, Direction::pull}) {
        const TransferOptions how = options(DmaCommands::one_stream, false, direction);
        TaskGraph graph;
        Transfers transfers(graph, machine.topology, how);
        collective_algorithm("direct").build({gather, Bytes(4e4)}, RankTasks(4), transfers);
        REQUIRE(graph.size() == 12);
        for (TaskId id = 0; id < graph.size(); ++id)
            CHECK(graph[id].stream == transfer_stream(graph[id].gpu));
        // 100 MB a copy: engines are busy all the time if no two of them serve one GPU at once.
        CHECK(time_us(engine, gather, 1e8, how, machine) == Approx(3 * 1e4).epsilon(0.01));
    }
}

TEST_CASE("a broadcast is one command for two GPUs, at the engine's rate for both together") {
    const std::string engine = any_engine();
    // A broadcast, issued until 2: start 1, link 1, 20 kB at 8 GB/s = 2.5, completion 1: 7.5. A copy for the
    // third peer, issued until 4: start 1, link 1, bytes 1, completion 1: 8, which is 0.5 later.
    CHECK(time_us(engine, gather, small, options(DmaCommands::broadcast)) == Approx(8));
    // Released at 0.25; the copy ends at 4.25, the broadcast at 5.75.
    CHECK(time_us(engine, gather, small, options(DmaCommands::broadcast, true)) == Approx(5.75));
    // 1 MB: 2 MB at 8 GB/s = 250; 2 + 2 + 250 + 1.
    CHECK(time_us(engine, gather, 1e6, options(DmaCommands::broadcast)) == Approx(255));
}

TEST_CASE("a swap is one command for both ways of a pair, on one engine") {
    const std::string engine = any_engine();
    // Six pairs: ranks 0 and 1 do two. Issued until 2 and 4; start 1, link 1, 20
    // kB at 10 GB/s = 2, completion 1.
    CHECK(time_us(engine, all_to_all, small, options(DmaCommands::swap)) == Approx(9));
    // 0.25 + 2 + 2 + 1, and the other's end half a microsecond later.
    CHECK(time_us(engine, all_to_all, small, options(DmaCommands::swap, true)) == Approx(5.75));
}

TEST_CASE("back to back: one schedule, one engine, one completion") {
    const std::string engine = any_engine();
    for (const Direction direction : {Direction::push, Direction::pull})
        for (const CollectiveKind kind : {gather, all_to_all}) {
            // Commands 1 + 2 · 0.125, schedule 1; start 1, link 1, bytes 1, twice
            // (start 0.5, bytes 1), completion 1.
            CHECK(time_us(engine, kind, small, options(DmaCommands::back_to_back, false, direction)) ==
                  Approx(9.25));
            CHECK(time_us(engine, kind, small, options(DmaCommands::back_to_back, true, direction)) ==
                  Approx(7.25));  // 0.25 + 2 + 1 + 3 + 1
        }
}

TEST_CASE("a broadcast reads once and a swap moves both ways") {
    const Machine machine = mesh();
    const ResourceTable& table = machine.resources;
    const auto link = [&](int src, int dst) {
        return table.link(machine.topology.route(src, dst).links.at(0));
    };
    CopyWork work{0, 1, Bytes(small), Bytes(small), Agent::dma, Direction::push, 0};
    work.command = Broadcast{2};
    const Cost broadcast = CostModels().cost(Task{work, 0, transfer_stream(1)}, machine);
    for (const int gpu : {0, 1, 2}) CHECK(sum_of(broadcast, table.hbm(gpu)) == Approx(small));
    CHECK(sum_of(broadcast, link(0, 1)) == Approx(small));
    CHECK(sum_of(broadcast, link(0, 2)) == Approx(small));
    // 2 · 10 kB at 8 GB/s take as much of the engine as 25 kB at 10 GB/s.
    CHECK(sum_of(broadcast, table.dma_engine(0, 1)) == Approx(2.5 * small));

    work.command = Swap();
    const Cost swap = CostModels().cost(Task{work, 0, transfer_stream(1)}, machine);
    for (const int gpu : {0, 1}) CHECK(sum_of(swap, table.hbm(gpu)) == Approx(2 * small));
    CHECK(sum_of(swap, link(0, 1)) == Approx(small));
    CHECK(sum_of(swap, link(1, 0)) == Approx(small));
    CHECK(sum_of(swap, table.dma_engine(0, 1)) == Approx(2 * small));
}

TEST_CASE("two ways of a broadcast over one link load it twice") {
    DeviceSpec device = mesh().topology.device();
    const std::string links =
        group("links", R"(, "pairs": [[0, 1]])") + "," + group("links", R"(, "pairs": [[1, 2]])");
    const Machine row = machine_of(topology_of(3, links, 1, "", device));
    CopyWork work{0, 1, Bytes(small), Bytes(small), Agent::dma, Direction::push, 0};
    work.command = Broadcast{2};
    const Cost cost = CostModels().cost(Task{work, 0, transfer_stream(1)}, row);
    CHECK(sum_of(cost, row.resources.link(row.topology.route(0, 1).links.at(0))) == Approx(2 * small));
    CHECK(to_microseconds(cost.setup) == Approx(3));  // start 1, the longer way: two links of 1
}

// Of which size which commands are the fastest is what AMD-DMA-Latte found: back to back below 256 KiB a
// copy, plain copies above.
TEST_CASE("auto takes the commands that are fastest") {
    struct Choice {
        double bytes;
        std::string kind;
        bool prelaunch;
        std::string expected;
    };
    const std::vector<Choice> choices{
        {1024, "all_gather", false, "back_to_back"}, {1e9, "all_gather", false, "copy"},
        {1e6, "all_gather", false, "broadcast"},     {1024, "all_to_all", true, "back_to_back"},
        {1e9, "all_to_all", true, "copy"},           {1024, "all_reduce", false, "back_to_back"}};
    for (const Choice& choice : choices) {
        INFO(choice.kind << " of " << choice.bytes << (choice.prelaunch ? ", prelaunched" : ""));
        Json params{{"dma_commands", "auto"}, {"prelaunch", choice.prelaunch}};
        const Scenario scenario = resolved(on_mesh(choice.kind, choice.bytes, params));
        CHECK(scenario.config()["params"]["dma_commands"] == choice.expected);
        const double fastest = mi300x_us(choice.kind, choice.bytes, params);
        int slower = 0;
        for (const std::string other : {"copy", "broadcast", "swap", "back_to_back"}) {
            params["dma_commands"] = other;
            if (!refused(choice.kind, params).empty()) continue;
            CHECK(mi300x_us(choice.kind, choice.bytes, params) >= fastest);
            slower += other != choice.expected ? 1 : 0;
        }
        CHECK(slower >= 1);
    }
}

TEST_CASE("to launch before never costs time, whatever the commands and the size") {
    int checked = 0;
    for (const std::string kind : {"all_gather", "all_to_all"})
        for (const std::string commands :
             {"copy", kind == "all_gather" ? "broadcast" : "swap", "back_to_back"})
            for (const double bytes : {1e3, 1e5, 1e7, 1e9}) {
                const double usual = mi300x_us(kind, bytes, {{"dma_commands", commands}});
                CHECK(mi300x_us(kind, bytes, {{"dma_commands", commands}, {"prelaunch", true}}) < usual);
                ++checked;
            }
    CHECK(checked == 24);
}

TEST_CASE("without launches only bytes are left, on seven links at once or one after another") {
    // 131 072 bytes a link of 46.5 GB/s: 2.8187 us.
    const auto without_launch = [](const Json& params) {
        RunConfig config = on_mesh("all_gather", 1048576, params);
        config.without = {"launch", "contention"};
        return to_microseconds(run(resolved(config)).makespan);
    };
    CHECK(without_launch({{"prelaunch", true}}) == Approx(2.8187).epsilon(1e-4));
    CHECK(without_launch({{"dma_commands", "back_to_back"}}) == Approx(7 * 2.8187).epsilon(1e-4));
}

TEST_CASE("commands that can't be are refused") {
    CHECK_THAT(refused("all_gather", {{"dma_commands", "swap"}}),
               Contains("dma_commands 'swap' can't do an all_gather"));
    CHECK_THAT(refused("all_to_all", {{"dma_commands", "broadcast"}}),
               Contains("dma_commands 'broadcast' can't do an all_to_all"));
    CHECK_THAT(refused("all_gather", {{"dma_commands", "broadcast"}, {"transfer", "pull"}}),
               Contains("/params/transfer: is 'pull', but dma_commands 'broadcast' writes"));
    CHECK_THAT(refused("all_gather", {{"dma_commands", "back_to_back"}, {"agent", "cu"}}),
               Contains("/params/dma_commands: needs agent 'dma'"));
    CHECK_THAT(refused("all_gather", {{"prelaunch", true}, {"algorithm", "ring"}}),
               Contains("/params/prelaunch: needs algorithm 'direct', not 'ring'"));
    CHECK_THAT(refused("all_gather", {{"dma_commands", "brodcast"}}), Contains("did you mean 'broadcast'"));
    RunConfig nodes =
        on_mesh("all_gather", 1024, {{"dma_commands", "back_to_back"}, {"algorithm", "direct"}});
    nodes.topology = "mi300x_16";
    CHECK_THAT(error_of([&] { resolved(nodes); }), Contains("/params/dma_commands: needs GPUs of one node"));
    nodes.topology = "h200_8";
    CHECK_THAT(error_of([&] { resolved(nodes); }),
               Contains("/params/dma_commands: has no figures for device h200"));
}

}  // namespace overlap::test::dma_commands_test
