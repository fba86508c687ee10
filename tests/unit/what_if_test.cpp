// Do changes of a machine's files change what they name, and nothing else?
#include "sim/core/what_if.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "sim/run/run.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_library.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::what_if_test {

using Catch::Contains;

namespace {

/// A 16 GB all-gather on 2 GPUs: 8 GB over each link. Its GEMM is too small to matter.
Json copy_of(Json what_if = Json::object()) {
    return {{"topology", "h200_2"},
            {"schedule", "serial"},
            {"params", {{"transfer", "push"}}},
            {"workload",
             {{"collective", "all_gather"},
              {"gemm", {{"m", 2}, {"n", 1}, {"k", 1'000'000'000}, {"dtype", "fp8"}}}}},
            {"what_if", std::move(what_if)}};
}

Scenario scenario(const Json& json) {
    return resolved(read_run_config(json, "x.json"));
}
RunResult run_of(const Json& json) {
    return run(scenario(json));
}
std::string refused(const std::string& path, const Json& value) {
    return error_of([&] { scenario(copy_of({{path, value}})); });
}

/// What a change makes of {"a": {"b": [{"n": 3}, {"n": {"value": 2.5, …}}], "word": "fifo", "on": true}}.
Json changed(const std::string& path, const Json& value) {
    ConfigFile file{{{"a",
                      {{"b", {{{"n", 3}}, {{"n", {{"value", 2.5}, {"source", "test"}}}}}},
                       {"word", "fifo"},
                       {"on", true}}}},
                    "a.json"};
    WhatIf({{"device." + path, value}}, "x").change("device", std::array{&file});
    CHECK(file.name == "a.json with what_if");
    return file.json["a"];
}

}  // namespace

TEST_CASE("a change replaces a value, or multiplies a number") {
    CHECK(changed("a.b.0.n", 7)["b"][0]["n"] == 7);
    CHECK(changed("a.b.1.n", 7)["b"][1]["n"] == Json{{"value", 7}, {"source", "test"}});
    CHECK(changed("a.b.1.n", "2x")["b"][1]["n"]["value"] == 5.0);
    CHECK(changed("a.b.1.n", "1e-1x")["b"][1]["n"]["value"] == 0.25);
    CHECK(changed("a.word", "round_robin")["word"] == "round_robin");
    CHECK(changed("a.on", false)["on"] == false);
    CHECK(changed("a.on", false)["b"] == changed("a.on", true)["b"]);

    // A whole number stays one where it can.
    CHECK(changed("a.b.0.n", "2x")["b"][0]["n"].is_number_integer());
    CHECK(changed("a.b.0.n", "2x")["b"][0]["n"] == 6);
    CHECK(changed("a.b.0.n", "1.5x")["b"][0]["n"] == 4.5);
}

TEST_CASE("a change goes to the file that has its path, and leaves the others alone") {
    ConfigFile device{{{"dma", {{"a", 1}}}}, "device.json"}, fit{{{"dma", {{"b", 2}}}}, "fit.json"};
    const std::array files{&device, &fit};
    WhatIf({{"device.dma.b", 3}}, "x").change("topology", files);
    CHECK(fit.json["dma"]["b"] == 2);
    WhatIf({{"device.dma.b", 3}}, "x").change("device", files);
    CHECK(fit.json["dma"]["b"] == 3);
    CHECK(fit.name == "fit.json with what_if");
    CHECK(device.name == "device.json");
    CHECK_THAT(error_of([&] {
                   WhatIf({{"device.dma.cc", 3}}, "x").change("device", files);
               }),
               Contains("(did you mean 'a'?)") || Contains("(allowed: a, b)"));
}

TEST_CASE("twice the link bandwidth halves the time of the bytes of a long copy") {
    // What doubling saves is half of bytes/bandwidth, and doubling it again saves a quarter: latencies stay.
    const auto comm = [](const std::string& factor) {
        return run_of(copy_of({{"topology.fabric.0.bandwidth_GBps", factor},
                               {"device.dma.engine_GBps", "100x"},  // links alone limit
                               {"device.hbm_GBps", "100x"}}))
            .phases.comm.si();
    };
    const double one = comm("1x"), two = comm("2x"), four = comm("4x");
    const double bytes = 1e9, bandwidth = scenario(copy_of()).machine->topology.links()[0].bandwidth.si();
    CHECK(one - two == Approx(bytes / bandwidth / 2).epsilon(1e-6));
    CHECK(two - four == Approx(bytes / bandwidth / 4).epsilon(1e-6));
    CHECK(two > bytes / bandwidth / 2);
}

TEST_CASE("changes reach the topology, the device, its calibration and its GEMM parameters") {
    const Machine before = *scenario(copy_of()).machine;
    const Machine after = *scenario(copy_of({{"topology.gpus_per_node", 4},
                                             {"device.dma.peer_engines", "3x"},
                                             {"device.dma.order", "fifo"},
                                             {"device.launch.kernel_us", "2x"},
                                             {"device.gemm.bf16.peak_TFLOPS", 500}}))
                               .machine;
    CHECK(after.topology.gpus() == 4);
    const DeviceSpec &old = before.topology.device(), &now = after.topology.device();
    CHECK(now.dma->peer_engines == 3 * old.dma->peer_engines);
    CHECK(old.dma->order == QueueOrder::unspecified);
    CHECK(now.dma->order == QueueOrder::fifo);
    CHECK(now.launch->kernel.si() == Approx(2 * old.launch->kernel.si()));
    CHECK(to_teraflops(after.calibration.gemm_for(DType::bf16).peak_rate) == Approx(500));
    CHECK(after.calibration.gemm_for(DType::fp8) == before.calibration.gemm_for(DType::fp8));
}

TEST_CASE("values that follow a changed one move along by its factor") {
    const Json copy = copy_of();
    const auto machine = [&](const Json& what_if) {
        Json json = copy;
        json["topology"] = "mi300x_8";
        json["what_if"] = what_if;
        return *scenario(json).machine;
    };
    const Machine before = machine(Json::object());
    const auto rate = [](const Machine& one) { return one.calibration.gemm_for(DType::bf16).peak_rate; };
    const auto memory = [](const Machine& one) { return one.calibration.gemm_for(DType::bf16).memory.hbm; };

    // 1.2 * 304 = 364.8 units, rounded; the rate of one unit stays.
    const Machine units = machine({{"device.compute_units", "1.2x"}});
    CHECK(units.topology.device().compute_units == 365);
    CHECK(units.calibration.gemm_for(DType::bf16).compute_units == 365);
    CHECK(rate(units) / rate(before) == Approx(365.0 / 304));
    CHECK(units.topology.device().peak.at(DType::fp8) / before.topology.device().peak.at(DType::fp8) ==
          Approx(365.0 / 304));
    CHECK(memory(units) == memory(before));

    // Factors multiply; a value that is changed itself does not follow.
    const Machine both = machine({{"device.compute_units", "0.5x"}, {"device.peak_clock_GHz", "3x"}});
    CHECK(rate(both) / rate(before) == Approx(1.5));
    CHECK(both.topology.device().stream->cu / before.topology.device().stream->cu == Approx(3));
    const Machine own = machine({{"device.compute_units", "0.5x"}, {"device.gemm.bf16.peak_TFLOPS", "1x"}});
    CHECK(rate(own) == rate(before));
    CHECK(own.calibration.gemm_for(DType::fp8).peak_rate /
              before.calibration.gemm_for(DType::fp8).peak_rate ==
          Approx(0.5));

    // The data sheet's bandwidth moves the achieved one, and that the GEMMs'.
    const Machine sheet = machine({{"device.hbm_peak_GBps", "2x"}});
    CHECK(sheet.topology.device().hbm / before.topology.device().hbm == Approx(2));
    CHECK(memory(sheet) / memory(before) == Approx(2));
    CHECK(memory(machine({{"device.hbm_peak_GBps", "2x"}, {"device.hbm_GBps", "3x"}})) / memory(before) ==
          Approx(3));

    // At twice the rate a unit's products of attention take half the time; more units are no faster ones.
    const Machine faster = machine({{"device.peak_TFLOPS.bf16", "2x"}});
    const auto prefill = [](const Machine& one) { return one.calibration.kernels.prefill.at("bf16"); };
    const auto experts = [](const Machine& one) { return one.calibration.kernels.moe.at("bf16"); };
    CHECK(prefill(faster).block_dim / prefill(before).block_dim == Approx(0.5));
    CHECK(prefill(faster).block == prefill(before).block);
    CHECK(prefill(units).block_dim / prefill(before).block_dim == Approx(1));
    CHECK(prefill(units).compute_units == 365);
    CHECK(experts(faster).peak_rate / experts(before).peak_rate == Approx(2));
    CHECK(experts(sheet).hbm / experts(before).hbm == Approx(2));
}

TEST_CASE("a measured GEMM changes with the parameters as a modelled one does") {
    // 8192x2560x8192 is measured on H200; a what-if that hardly changes anything hardly changes its time.
    const auto gemm_time = [](const Json& what_if) {
        Json json = copy_of(what_if);
        json["workload"]["gemm"] = {{"m", 8192}, {"n", 2560}, {"k", 8192}, {"dtype", "bf16"}};
        return run_of(json).phases.gemm.si();
    };
    const double measured = gemm_time(Json::object());
    CHECK(gemm_time({{"device.gemm.bf16.peak_TFLOPS", "1.00001x"}}) == Approx(measured).epsilon(1e-4));
    CHECK(gemm_time({{"device.gemm.bf16.peak_TFLOPS", "2x"}}) < 0.7 * measured);
    CHECK(gemm_time({{"device.gemm.bf16.peak_TFLOPS", "0.5x"}}) > 1.7 * measured);
}

TEST_CASE("measured times of a library's collective change as its lines do, where they change") {
    // H200's all-gather on 8 GPUs, 128 MiB: 379.88 us measured; its lines have 23.0 us and 334.2 GB/s for bus bytes.
    const double bytes = 134'217'728, bus_bytes = 7.0 / 8 * bytes, line = 23.0 + bus_bytes / 334.2e3;
    const auto time = [&](const Json& what_if) {
        Json json = copy_of(what_if);
        json["topology"] = "h200_8";
        json["params"] = {{"algorithm", "library"}};
        json["workload"]["gemm"] = {{"m", 8192}, {"n", 1}, {"k", 8192}, {"dtype", "bf16"}};
        const Machine machine = *scenario(json).machine;
        const auto& times = machine.topology.device()
                                .collective_library->collectives.at(CollectiveKind::all_gather)
                                .times.at(8);
        const auto at = std::find_if(times.begin(), times.end(),
                                     [&](const auto& one) { return one.first == Bytes(bytes); });
        REQUIRE(at != times.end());
        CHECK(run_of(json).phases.comm.si() == Approx(at->second.si()).epsilon(0.05));
        return to_microseconds(at->second);
    };
    const std::string fit = "device.collective_library.all_gather.";
    CHECK(time(Json::object()) == 379.88);
    CHECK(time({{fit + "bus_GBps", "1x"}}) == 379.88);
    CHECK(time({{"device.collective_library.all_reduce.bus_GBps", "2x"}}) == 379.88);
    CHECK(time({{fit + "bus_GBps", "0.8x"}}) == Approx(379.88 * (23.0 + bus_bytes / (0.8 * 334.2e3)) / line));
    CHECK(time({{fit + "latency_us", 123.0}, {fit + "small.latency_us", 500.0}}) ==
          Approx(379.88 * (line + 100) / line));
}

TEST_CASE("another device may be put into a topology") {
    const Machine machine = *scenario(copy_of({{"topology.device", "mi300x.json"}})).machine;
    CHECK(machine.topology.device().name == "mi300x");
    CHECK(machine.calibration.device == "mi300x");
}

TEST_CASE("results say what was changed, and their config gives the same run again") {
    const Json what_if{{"topology.fabric.0.bandwidth_GBps", "2x"}, {"device.dma.peer_engines", 2}};
    const RunResult result = run_of(copy_of(what_if));
    CHECK(result.config.at("what_if") == what_if);
    CHECK(run_of(result.config).makespan == result.makespan);
    CHECK(run_of(result.config).config == result.config);
    CHECK_FALSE(run_of(copy_of()).config.contains("what_if"));
}

TEST_CASE("mistakes in a what-if are errors that say what is allowed") {
    CHECK_THAT(refused("workload.gemm.m", 4),
               Contains("x.json: /what_if/workload.gemm.m: begins with 'workload', expected topology.KEY"));
    CHECK_THAT(refused("device", 4), Contains("expected topology.KEY or device.KEY"));
    CHECK_THAT(
        refused("topology.fabric.0.bandwith_GBps", 4),
        Contains(
            "x.json: /what_if/topology.fabric.0.bandwith_GBps: has 'bandwith_GBps' after /fabric/0 of") &&
            Contains("h200_2.json, which has no such key (did you mean 'bandwidth_GBps'?)"));
    CHECK_THAT(refused("topology.fabric.7.type", "ring"), Contains("has '7' after /fabric of"));
    CHECK_THAT(refused("topology.fabrik.0.type", "ring"), Contains("after / of") && Contains("'fabric'"));
    CHECK_THAT(refused("device.gemm.bf61.peak_TFLOPS", 1), Contains("did you mean 'bf16'"));
    CHECK_THAT(refused("device.dma.peer_engines.value", 4), Contains("h200.json, which is a value"));
    CHECK_THAT(refused("device.dma", 4),
               Contains("is all of /dma of") && Contains("expected one value of it"));
    CHECK_THAT(refused("topology.name", "h200_4"), Contains("can't be changed"));
    CHECK_THAT(refused("device.dma.peer_engines", "4"),
               Contains("is \"4\", expected a number, or a factor such as \"2x\" instead of"));
    for (const char* factor : {"x", "2 x", "2xx", "0x2", "infx", "nanx"})
        CHECK_THAT(refused("device.dma.peer_engines", factor), Contains("expected a number, or a factor"));
    CHECK_THAT(refused("device.dma.order", 4), Contains("expected text instead of"));
    CHECK_THAT(refused("device.dma.order", "lifo"),
               Contains("with what_if: /dma/order/value: is 'lifo'") && Contains("'fifo'"));
    CHECK_THAT(refused("device.dma.peer_engines", Json::array({4})), Contains("is [4], expected a number"));

    // The ranges of the files hold, and the message says that the file is not what is wrong.
    CHECK_THAT(
        refused("topology.fabric.0.bandwidth_GBps", "-1x"),
        Contains("h200_2.json with what_if: /fabric/0/bandwidth_GBps/value: is -397.5, expected a number"));
    CHECK_THAT(refused("device.dma.peer_engines", 1.5), Contains("must be a whole number"));
    CHECK_THAT(refused("topology.gpus_per_node", "1.25x"), Contains("is 2.5, expected a whole number"));
    CHECK_THAT(refused("device.compute_units", "1e300x"),
               Contains("h200.json with what_if: /compute_units/value:"));

    Json list = copy_of();
    list["what_if"] = Json::array({1});
    CHECK_THAT(error_of([&] { scenario(list); }), Contains("x.json: /what_if: is [1], expected an object"));
}

}  // namespace overlap::test::what_if_test
