// Do configs that share a machine get the same scenario as each would alone?
#include "sim/run/resolver.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <thread>

#include "sim/run/run.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::scenario_test {

using Catch::Contains;

namespace {

RunConfig config_of(const Json& more = Json::object(), const std::string& origin = "x.json") {
    Json json{{"topology", "h200_4"},
              {"schedule", "hetero_fused_1d"},
              {"workload",
               {{"collective", "all_gather"},
                {"gemm", {{"m", 4096}, {"n", 1024}, {"k", 2048}, {"dtype", "bf16"}}}}}};
    json.update(more);
    return read_run_config(json, origin);
}

std::vector<RunConfig> various() {
    return {config_of(),
            config_of({{"params", {{"chunks", 2}}}}),
            config_of({{"topology", "h200_4.json"}}),
            config_of({{"topology", "mi300x_8"}}),
            config_of({{"workload", "llama3_70b_gate_up_forward"}}),
            config_of({{"workload", "llama3_70b_gate_up_forward"}, {"topology", "mi300x_8"}}),
            config_of({{"what_if", {{"topology.fabric.0.bandwidth_GBps", "2x"}}}}),
            config_of({{"what_if", {{"topology.fabric.0.bandwidth_GBps", "3x"}}}})};
}

}  // namespace

TEST_CASE("the values asked for last are kept") {
    RecentValues<std::string, int> values(2);
    int made = 0;
    const auto get = [&](const std::string& key) { return values.get(key, [&] { return ++made; }); };
    CHECK(get("a") == 1);
    CHECK(get("b") == 2);
    CHECK(get("a") == 1);
    CHECK(get("c") == 3);  // b goes: a was asked for after it
    CHECK(get("a") == 1);
    CHECK(get("b") == 4);
    CHECK(get("a") == 1);
    CHECK(get("c") == 5);
}

TEST_CASE("a value that can't be made is not kept") {
    RecentValues<std::string, int> values(2);
    const auto fails = []() -> int { throw UserError("no"); };
    CHECK(error_of([&] { values.get("a", fails); }) == "no");
    CHECK(values.get("a", [] { return 7; }) == 7);
}

TEST_CASE("scenarios of one resolver share machines and are those of a resolver each") {
    Resolver resolver(shipped);
    int checked = 0;
    for (const RunConfig& config : various()) {
        const Scenario alone = resolve(config, shipped);
        const Seconds makespan = predict(alone).makespan;
        for (int round = 0; round < 2; ++round) {
            const Scenario scenario = resolver.resolve(config);
            INFO(alone.config().dump());
            CHECK(scenario.config() == alone.config());
            CHECK(scenario.machine->sustained == alone.machine->sustained);
            if (round == 1) CHECK(predict(scenario).makespan == makespan);
            CHECK(resolver.resolve(config).machine == scenario.machine);
            ++checked;
        }
    }
    CHECK(checked == 16);
    const auto machine = [&](const Json& more) { return resolver.resolve(config_of(more)).machine; };
    CHECK(machine({{"params", {{"chunks", 2}}}}) == machine(Json::object()));
    CHECK(machine({{"what_if", Json::object()}}) == machine(Json::object()));
    CHECK(machine({{"what_if", {{"device.dma.peer_engines", 2}}}}) != machine(Json::object()));
    // A longer GEMM keeps the GPUs multiplying for longer, on links that are the same.
    CHECK(machine({{"workload", "llama3_70b_gate_up_forward"}})->sustained >
          machine(Json::object())->sustained);
}

TEST_CASE("errors of a shared machine name the config that asked for it") {
    Resolver resolver(shipped);
    int checked = 0;
    for (const std::string origin : {"a.json", "b.json"}) {
        const RunConfig config = config_of({{"what_if", {{"device.dma.peer_engine", 2}}}}, origin);
        CHECK_THAT(error_of([&] { resolver.resolve(config); }), Contains(origin + ": /what_if/"));
        ++checked;
    }
    CHECK(checked == 2);
}

TEST_CASE("a resolver that four threads use gives what it gives to one") {
    const std::vector<RunConfig> configs = various();
    std::vector<Json> alone;
    for (const RunConfig& config : configs) alone.push_back(resolve(config, shipped).config());

    Resolver resolver(shipped);
    std::array<std::vector<Json>, 4> at_once;
    std::vector<std::thread> threads;
    for (std::vector<Json>& results : at_once)
        threads.emplace_back([&] {
            for (const RunConfig& config : configs) results.push_back(resolver.resolve(config).config());
        });
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<Json>& results : at_once) CHECK(results == alone);
}

}  // namespace overlap::test::scenario_test
