#include "sim/run/run.hpp"
#include "sim/run/resolver.hpp"

#include <catch2/catch.hpp>

#include "sim/pricing/effects.hpp"
#include "sim/report/run/report.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::run_test {

using Catch::Contains;

namespace {

Json config_of(const std::string& topology, const std::string& schedule, const Json& workload,
               const Json& more = Json::object()) {
    Json json{{"topology", topology}, {"schedule", schedule}, {"workload", workload}};
    json.update(more);
    return json;
}

Json pair_json(const std::string& collective) {
    return {{"collective", collective}, {"gemm", {{"m", 4096}, {"n", 1024}, {"k", 2048}, {"dtype", "bf16"}}}};
}

Scenario scenario(const Json& json) {
    return resolved(read_run_config(json, "x.json"));
}
RunResult run_of(const Json& json) {
    return run(scenario(json));
}
std::string resolving(const Json& json) {
    return error_of([&] { scenario(json); });
}

/// All that a result says but the clock.
Json numbers_of(const RunResult& result) {
    Json json = to_json(result);
    json.erase("wall_ms");
    return json;
}

/// A few runs that between them lose time in every way.
const std::vector<Json>& samples() {
    static const Json cu{{"params", {{"agent", "cu"}, {"chunks", 3}}}};
    static const std::vector<Json> configs{
        config_of("h200_4", "hetero_fused_1d", pair_json("all_gather")),
        config_of("h200_4", "uniform_fused_2d", pair_json("all_reduce"), cu),
        config_of("mi300x_8", "shard_p2p", pair_json("all_to_all")),
        config_of("mi250x_8", "ring_chunked", pair_json("reduce_scatter"), cu),
        config_of("h200_2", "concurrent", "llama3_70b_independent"),
        config_of("h200_2", "concurrent", "llama3_70b_mlp_layer"),
    };
    return configs;
}

}  // namespace

TEST_CASE("the losses add up to makespan less ideal, exactly") {
    int checked = 0;
    for (const Json& config : samples()) {
        INFO(config.dump());
        const RunResult result = run_of(config);
        const Losses& l = result.losses;
        const Seconds sum = l.contention + l.launch + l.packing + l.decomposition + l.pattern + l.fill_drain;
        const double difference = (sum - (result.makespan - result.ideal)).si();
        CHECK(std::abs(difference) <= 1e-12 * result.makespan.si());
        CHECK(result.makespan > Seconds());
        CHECK(result.makespan >= result.ideal);
        CHECK(result.ideal <= std::max(result.phases.gemm, result.phases.comm));
        CHECK(result.baseline.speedup == Approx(result.baseline.time / result.makespan));
        CHECK(result.baseline.time <= result.phases.serial);
        CHECK(result.makespan == result.observed.timeline.end());
        CHECK(result.observed.timeline.spans().size() == result.simulation.tasks);
        for (const double share : {result.used.utilisation.cu, result.used.utilisation.hbm,
                                   result.used.utilisation.link, result.used.utilisation.dma}) {
            CHECK(share >= 0);
            CHECK(share <= 1 + 1e-9);
        }
        ++checked;
    }
    CHECK(checked == 6);
}

TEST_CASE("a baseline that runs share, and no record, change no number") {
    Baselines baselines;
    int checked = 0;
    for (int round = 0; round < 2; ++round)
        for (Json config : samples())
            for (const int chunks : {2, 3}) {
                if (scenario(config).config()["params"].contains("chunks"))
                    config["params"]["chunks"] = chunks;
                INFO(config.dump());
                const RunResult alone = run_of(config);
                const RunResult shared = run(scenario(config), {.record = false, .baselines = &baselines});
                CHECK(numbers_of(shared) == numbers_of(alone));
                CHECK(shared.observed.timeline.spans().empty());
                CHECK(shared.observed.counters.empty());
                ++checked;
            }
    CHECK(checked == 24);
}

TEST_CASE("a baseline is shared by schedules, but not by machines, workloads or agents") {
    Resolver resolver(shipped);
    Baselines baselines;
    const Json config = config_of("mi300x_8", "hetero_fused_1d", pair_json("all_gather"));
    const auto serial = [&](const Json& more) {
        Json changed = config;
        changed.update(more);
        const Scenario changed_scenario = resolver.resolve(read_run_config(changed, "x.json"));
        const Seconds shared = baselines.own(changed_scenario).makespan;
        CHECK(shared == own_serial(changed_scenario).makespan);
        CHECK(baselines.fastest(changed_scenario).makespan == fastest_serial(changed_scenario).makespan);
        return shared;
    };
    const Seconds usual = serial(Json::object());
    CHECK(serial({{"schedule", "ring_chunked"}}) == usual);
    CHECK(serial({{"params", {{"chunks", 2}}}}) == usual);
    CHECK(serial({{"params", {{"agent", "cu"}}}}) != usual);
    CHECK(serial({{"params", {{"agent", "cu"}, {"copy_cus", 2}}}}) !=
          serial({{"params", {{"agent", "cu"}}}}));
    CHECK(serial({{"workload", pair_json("reduce_scatter")}}) != usual);
    CHECK(serial({{"without", {"launch"}}}) < usual);
    CHECK(serial({{"cost_models", {"gemm_roofline"}}}) != usual);
    CHECK(serial({{"what_if", {{"topology.fabric.0.bandwidth_GBps", "2x"}}}}) < usual);
}

TEST_CASE("the baseline of a fused kernel launches its transfers") {
    const auto of = [](const std::string& schedule, const Json& params) {
        return run_of(config_of("mi300x_8", schedule, pair_json("all_gather"), {{"params", params}}));
    };
    const RunResult launched = of("flag_gated", {{"agent", "cu"}});
    const RunResult fused = of("flag_gated", {{"agent", "cu"}, {"prelaunch", true}});
    CHECK(fused.phases.serial == launched.phases.serial);
    CHECK(fused.phases.serial == of("serial", {{"agent", "cu"}}).makespan);
    CHECK(fused.makespan < launched.makespan);
    // serial itself may be told to have its kernels running.
    CHECK(of("serial", {{"agent", "cu"}, {"prelaunch", true}}).phases.serial < fused.phases.serial);
}

TEST_CASE("what no effect explains is the same, whether the effects are on or off") {
    for (Json config : samples()) {
        INFO(config.dump());
        const RunResult on = run_of(config);
        config["without"] = effect_names;
        const RunResult off = run_of(config);
        CHECK(off.losses.pattern.si() == Approx(on.losses.pattern.si()).margin(1e-12));
        if (on.simulation.seeds == 1)  // else each takes the order that is its median
            CHECK(off.losses.fill_drain.si() == Approx(on.losses.fill_drain.si()).margin(1e-12));
    }
}

TEST_CASE("without any one effect, or all of them, a run is never slower") {
    int checked = 0;
    for (const Json& config : samples()) {
        const Seconds with_all = run_of(config).makespan;
        std::vector<Json> lists{Json(effect_names)};
        for (const std::string& name : effect_names) lists.push_back(Json::array({name}));
        for (const Json& list : lists) {
            Json fewer = config;
            fewer["without"] = list;
            INFO(fewer.dump());
            CHECK(run_of(fewer).makespan <= with_all * (1 + 1e-9));
            ++checked;
        }
    }
    CHECK(checked == 36);  // 6 · 6
}

TEST_CASE("on one GPU every pair is its GEMM alone, with nothing to gain") {
    int checked = 0;
    for (const std::string schedule : {"serial", "shard_direct", "ring_chunked", "hetero_fused_1d"}) {
        for (const std::string collective : {"all_gather", "reduce_scatter"}) {
            INFO(schedule << " " << collective);
            const RunResult result = run_of(config_of("mi300x_1", schedule, pair_json(collective)));
            CHECK(result.simulation.tasks == 1);
            CHECK(result.makespan.si() == Approx(result.phases.gemm.si()).epsilon(1e-9));
            CHECK(result.phases.comm == Seconds());
            CHECK(result.phases.exposed_comm == Seconds());
            CHECK_FALSE(result.baseline.overlap_efficiency.has_value());
            ++checked;
        }
    }
    CHECK(checked == 8);
}

TEST_CASE("the resolved config gives the same scenario again") {
    int checked = 0;
    for (const Json& config : samples()) {
        const Json resolved = scenario(config).config();
        CHECK(scenario(resolved).config() == resolved);
        ++checked;
    }
    CHECK(checked == 6);
    const Json resolved = scenario(samples()[0]).config();
    CHECK(resolved.at("params").at("chunks") == 4);
    CHECK(resolved.at("engine") == default_engine);
    CHECK(resolved.at("workload").at("order") == "collective_first");
}

TEST_CASE("an ideal pair of independent operators takes the longer of the two") {
    // Nothing shared and no latency: the makespan is the larger of GEMM and
    // transfers, and serial is their sum.
    Json config = config_of("mi300x_8", "concurrent", pair_json("all_gather"));
    config["workload"]["order"] = "independent";
    config["without"] = {"contention", "launch"};
    const RunResult result = run_of(config);
    CHECK(result.makespan.si() == Approx(std::max(result.phases.gemm, result.phases.comm).si()));
    CHECK(result.phases.serial.si() == Approx((result.phases.gemm + result.phases.comm).si()));
    CHECK(result.baseline.overlap_efficiency.value() == Approx(1));
}

TEST_CASE("operators that outlast simulated time are refused before the run, by either engine") {
    const auto list = [](const Json& op) { return Json{{"operators", {op}}}; };
    const Json gemm = list({{"name", "mm"},
                            {"type", "gemm"},
                            {"m", 1'000'000'000},
                            {"n", 1'000'000'000},
                            {"k", 1'000'000'000},
                            {"dtype", "bf16"}});
    // 1e15 B: an eighth of it by each link takes 9,615 s at 13 GB/s, 8,929 s at 14 GB/s.
    const Json gathered =
        list({{"name", "ag"}, {"type", "collective"}, {"collective", "all_gather"}, {"bytes", 1e15}});
    const auto with_links = [](double bandwidth) {
        return Json{{"what_if", {{"topology.fabric.0.bandwidth_GBps", bandwidth}}}};
    };
    for (const std::string engine : {"flow", "simgrid"}) {
        const auto running = [&](const Json& workload, Json more) {
            more["engine"] = engine;
            return error_of([&] { run_of(config_of("mi300x_8", "concurrent", workload, more)); });
        };
        CHECK_THAT(running(gemm, Json::object()),
                   Contains("gemm of gpu 0 goes on beyond the end of simulated time"));
        CHECK_THAT(running(gathered, with_links(13)), Contains("copy 1>0 s1 of gpu 0 goes on beyond"));
    }
    const RunResult just = run_of(config_of("mi300x_8", "concurrent", gathered, with_links(14)));
    CHECK(just.makespan.si() == Approx(1e15 / 8 / 14e9).epsilon(1e-3));
}

TEST_CASE("mistakes in a run config are errors that say what is allowed") {
    const Json good = samples()[0];
    const auto with = [&](const std::string& key, const Json& value) {
        Json json = good;
        json[key] = value;
        return resolving(json);
    };
    REQUIRE(resolving(good) == "");
    CHECK_THAT(with("topology", ""), Contains("x.json: /topology: is empty, expected text"));
    CHECK_THAT(with("topology", "h200_44"),
               Contains("h200_44: no such file") && Contains("did you mean 'h200_4'"));
    CHECK_THAT(with("schedule", ""), Contains("x.json: /schedule: is empty, expected text"));
    CHECK_THAT(with("schedule", "hetero_fused_3d"), Contains("did you mean 'hetero_fused_"));
    CHECK_THAT(with("schedule", "concurrent"), Contains("does not serve a workload 'all_gather > gemm'"));
    CHECK_THAT(with("params", 3), Contains("x.json: /params: is 3, expected an object"));
    CHECK_THAT(with("workload", 3), Contains("x.json: /workload: is 3, expected a file name or an object"));
    CHECK_THAT(with("workload", "llama3_70b_gate_up"), Contains("did you mean 'llama3_70b_gate_up_"));
    CHECK_THAT(with("engine", "simgird"), Contains("did you mean 'simgrid'"));
    CHECK_THAT(with("cost_models", {"roofline"}), Contains("cost model 'roofline' is not known"));
    CHECK_THAT(with("without", {"noise"}), Contains("without: 'noise' is no effect"));
    CHECK_THAT(with("colour", 1), Contains("x.json: /colour: is an unknown key"));
    CHECK_THAT(with("schema", 2), Contains("x.json: /schema: is 2"));
}

TEST_CASE("what computes does not wait for a kernel on the local stream that is before it in the list") {
    const auto time = [](const std::string& stream) {
        Json config = parse_json(
            R"({"topology": "h200_2", "schedule": "concurrent", "params": {"algorithm": "library", "agent": "cu"},
            "workload": {"operators": [
                {"name": "gather", "type": "collective", "collective": "all_gather", "bytes": 268435456},
                {"name": "cast", "type": "memory_bound", "read_bytes": 4096, "write_bytes": 4096, "needs": ["gather"]},
                {"name": "mm", "type": "gemm", "m": 4096, "n": 4096, "k": 4096, "dtype": "bf16"}]}})",
            "");
        config["workload"]["order"] = "program";
        config["workload"]["operators"][1]["stream"] = stream;
        const Scenario scenario = resolved(read_run_config(config, "test"));
        CHECK(to_json(scenario.workload)["operators"][1].value("stream", "compute") == stream);
        return to_microseconds(run(scenario, {.record = false}).makespan);
    };
    // The gather takes 0.5 ms; the GEMM, 0.2 ms, runs beside it, which slows both, or behind it.
    CHECK(time("local") < 0.95 * time("compute"));
}

}  // namespace overlap::test::run_test
