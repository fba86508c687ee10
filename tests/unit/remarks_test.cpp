// Do outputs name the priced kernel library and the what-if changes that mislead?
#include "sim/run/remarks.hpp"

#include <catch2/catch.hpp>

#include "models/cost_model_registry.hpp"
#include "models/gemm_libraries.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/device_launch.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::remarks_test {

using Catch::Contains;
using Catch::EndsWith;
using Catch::Equals;

namespace {

RunConfig config_of(const Json& what_if, const std::string& topology = "mi300x_8",
                    const std::string& dtype = "bf16") {
    return read_run_config({{"topology", topology},
                            {"schedule", "serial"},
                            {"workload",
                             {{"collective", "all_gather"},
                              {"gemm", {{"m", 8192}, {"n", 8192}, {"k", 8192}, {"dtype", dtype}}}}},
                            {"what_if", what_if}},
                           "x.json");
}

Remarks remarks_of(const RunConfig& config) {
    const Scenario scenario = resolved(config);
    return Remarker(shipped).on(config, scenario, predict(scenario).makespan);
}

RunResult run_of(const RunConfig& config) {
    return run(resolved(config));
}

std::vector<std::string> notes_of(const Json& what_if) {
    return remarks_of(config_of(what_if)).notes;
}

/// The only note on one change.
std::string note_of(const std::string& key, const Json& value) {
    const std::vector<std::string> notes = notes_of({{key, value}});
    return notes.size() == 1 ? notes[0] : std::to_string(notes.size()) + " notes";
}

}  // namespace

TEST_CASE("a value that no price reads says so, and which one is read") {
    CHECK_THAT(note_of("device.board_power_W", 1000), Contains("is information only, no price reads it") &&
                                                          Contains("device.gemm.TYPE.sustained_slowdown"));
    CHECK_THAT(note_of("device.hbm_capacity_GB", "2x"), Contains("no price reads it"));
}

TEST_CASE("values that are called information change no run") {
    for (const std::string key : {"device.board_power_W", "device.hbm_capacity_GB"}) {
        for (const std::string topology : {"mi300x_8", "h200_4"}) {
            INFO(key << " on " << topology);
            const auto makespan = [&](const Json& what_if) {
                return predict(resolved(config_of(what_if, topology))).makespan;
            };
            CHECK(makespan({{key, "2x"}}) == makespan(Json::object()));
        }
    }
}

TEST_CASE("a change without effect on the makespan says so, one with an effect says nothing") {
    CHECK_THAT(note_of("device.copy_kernel.launch_us", "3x"),
               Equals("what-if device.copy_kernel.launch_us=3x: changes nothing in this run's makespan"));
    CHECK(notes_of({{"device.dma.start_us", "3x"}, {"device.gemm.bf16.peak_TFLOPS", "2x"}}).empty());
    CHECK(notes_of(Json::object()).empty());
    // Of two changes the one without effect is named.
    const auto notes =
        notes_of({{"device.gemm.bf16.peak_TFLOPS", "2x"}, {"device.copy_kernel.launch_us", "3x"}});
    REQUIRE(notes.size() == 1);
    CHECK_THAT(notes[0], Contains("device.copy_kernel.launch_us"));
}

TEST_CASE("a number far from the file's may have been meant as a factor") {
    const auto notes = notes_of({{"device.dma.engine_GBps", 2}});
    REQUIRE(notes.size() == 1);
    CHECK_THAT(notes[0], Contains("what-if device.dma.engine_GBps=2: the file says ") &&
                             Contains("more than 10 times off; did you mean \"2x\"?"));
    const auto noted = [](const Json& before, const Json& given) {
        return !notes_of_changes({{"device.dma.x", given, before, given.is_string() ? Json(before) : given}},
                                 Json::object(), Json::object(), {})
                    .empty();
    };
    CHECK(noted(50, 4.9));
    CHECK_FALSE(noted(50, 5));  // exactly ten times
    CHECK(noted(50, 501));
    CHECK_FALSE(noted(50, 500));
    CHECK_FALSE(noted(50, "0.01x"));
    CHECK_FALSE(noted(50, 0));  // switched off
    CHECK_FALSE(noted(0, 5));
    CHECK_FALSE(noted(1, 16));  // 16 times 1 is 16
    CHECK_FALSE(noted("fifo", "round_robin"));
}

TEST_CASE("a change says which values move along, of the run's GEMMs alone") {
    CHECK_THAT(note_of("device.compute_units", 380),
               Equals("what-if device.compute_units=380: also moves device.peak_TFLOPS.fp16, "
                      "device.peak_TFLOPS.bf16, device.peak_TFLOPS.fp8, device.gemm.bf16.compute_units, "
                      "device.gemm.bf16.peak_TFLOPS"));
    // 1.2 * 304 = 364.8
    const auto rounded = notes_of({{"device.compute_units", "1.2x"}});
    REQUIRE(rounded.size() == 2);
    CHECK_THAT(rounded[0], Equals("what-if device.compute_units=1.2x: is 364.8, rounded to 365"));
    CHECK_THAT(note_of("device.peak_TFLOPS.bf16", "2x"), EndsWith("also moves device.gemm.bf16.peak_TFLOPS"));
    // A factor of 1 moves nothing.
    CHECK_THAT(note_of("device.compute_units", "1x"), EndsWith("changes nothing in this run's makespan"));
}

TEST_CASE("compute units of fitted GEMMs are a value of their own, and the device's stay") {
    const auto fitted = notes_of({{"device.gemm.bf16.compute_units", "1.25x"}});
    REQUIRE_FALSE(fitted.empty());
    CHECK_THAT(fitted[0], Contains("does not change device.compute_units = 304, "
                                   "device.gemm.bf16.peak_TFLOPS = "));
    for (const std::string& note : notes_of({{"device.compute_units", "1.25x"},
                                             {"device.gemm.bf16.compute_units", "1.25x"},
                                             {"device.gemm.bf16.peak_TFLOPS", "1.25x"}}))
        CHECK_THAT(note, !Contains("does not change"));
}

TEST_CASE("a GEMM whose parameters have more units than the device takes what its estimate says") {
    const Scenario scenario = resolved(config_of({{"device.gemm.bf16.compute_units", "1.25x"}}));
    const Cost cost =
        CostModels().cost(Task{GemmShape{8192, 8192, 8192}, 0, compute_stream}, *scenario.machine);
    CHECK(isolated_body(cost, scenario.machine->resources).si() == Approx(cost.body.si()));
}

TEST_CASE("counts refuse fractions, and say which whole numbers are near") {
    for (const std::string key : {"device.compute_units", "device.gemm.bf16.compute_units"})
        CHECK_THAT(error_of([&] {
                       resolved(config_of({{key, 364.8}}));
                   }),
                   Contains("compute_units/value: is 364.8, but must be a whole number (364 or 365)"));
    CHECK_THAT(error_of([&] {
                   resolved(config_of({{"device.gemm.bf16.k_step", 63.5}}));
               }),
               Contains("must be a whole number (63 or 64)"));
}

TEST_CASE("a run says whose kernels its GEMMs are priced as") {
    CHECK_THAT(run_of(config_of(Json::object(), "mi355x_8", "fp8")).confidence.gemm_library(),
               Contains("hipBLASLt, tensor-wise"));
    CHECK(run_of(config_of(Json::object(), "mi355x_8", "bf16")).confidence.gemm_library() ==
          "hipBLASLt (aiter)");
    CHECK_THAT(
        run_of(config_of({{"device.gemm_library", "mixed"}}, "mi355x_8", "bf16")).confidence.gemm_library(),
        Contains("mix of"));
    CHECK_THAT(run_of(config_of({{"device.gemm_library", "ck_blockscale"}}, "mi355x_8", "fp8"))
                   .confidence.gemm_library(),
               Contains("Composable Kernel"));
    CHECK(run_of(config_of({{"device.gemm_library", "asm"}}, "mi355x_8")).confidence.gemm_library() ==
          "asm (aiter)");
    CHECK_THAT(
        run_of(config_of({{"device.gemm_library", "asm"}}, "mi355x_8", "fp8")).confidence.gemm_library(),
        Contains("row-wise"));  // asm is known for bf16 alone
    CHECK_THAT(run_of(config_of(Json::object(), "h200_4")).confidence.gemm_library(), Contains("cuBLASLt"));
    RunConfig roofline = config_of(Json::object());
    roofline.cost_models = {"gemm_roofline"};
    CHECK(run_of(roofline).confidence.gemm_library().empty());
}

TEST_CASE("every shipped calibration says whose kernels were timed, for every type and library") {
    std::size_t groups = 0;
    for (const std::string& device : shipped.names("calibrations")) {
        const ConfigFile file = read_config_file(shipped.find("calibrations", device), "calibration");
        const auto check = [&](const Json& types) {
            for (const auto& [type, group] : types.items()) {
                INFO(device << " " << type);
                CHECK(group.value("library", "") != "");
                ++groups;
            }
        };
        check(file.json.at("gemm"));
        if (file.json.contains("gemm_libraries"))
            for (const auto& item : file.json.at("gemm_libraries").items()) check(item.value());
    }
    CHECK(groups >= 20);
}

TEST_CASE(
    "a host's values of the device hold for devices whose files have them all; others keep theirs, and a note says so") {
    const auto dependency_and_notes = [](const std::string& topology, const std::string& host) {
        RunConfig config = config_of(Json::object());
        config.topology = topology;
        config.host = host;
        return std::pair(resolved(config).machine->topology.device().launch->dependency,
                         remarks_of(config).notes);
    };
    const auto own = dependency_and_notes("mi300x_8", ""),
               kept = dependency_and_notes("mi300x_8", "one_thread");
    CHECK(kept.first == own.first);
    CHECK(own.second.empty());
    CHECK(kept.second ==
          std::vector<std::string>{
              "host 'one_thread' has values of other GPUs for launches; mi300x keeps its own"});
    const auto other = dependency_and_notes("h200_8", ""),
               taken = dependency_and_notes("h200_8", "one_thread");
    CHECK(to_microseconds(taken.first) == Approx(0.25));  // configs/hosts/one_thread.json
    CHECK(to_microseconds(other.first) > 1);
    CHECK(taken.second.empty());
}

TEST_CASE("a host says whether what streams wait for is recorded by untimed events") {
    RunConfig config = config_of(Json::object());
    CHECK_FALSE(resolved(config).machine->untimed_events);
    config.host = "threads";
    CHECK_FALSE(resolved(config).machine->untimed_events);
    config.host = "one_thread";
    CHECK(resolved(config).machine->untimed_events);
}

TEST_CASE(
    "a run says where another host would change it by more than 5 %, and what is odd about a speed-up above 2") {
    const auto notes = [](const Json& more, double speedup) {
        Json json{{"topology", "h200_8"},
                  {"schedule", "hetero_fused_1d"},
                  {"workload",
                   {{"collective", "all_gather"},
                    {"gemm", {{"m", 8192}, {"n", 2560}, {"k", 8192}, {"dtype", "bf16"}}}}}};
        json.update(more);
        const RunConfig config = read_run_config(json, "x.json");
        const Scenario scenario = resolved(config);
        RunResult result = run(scenario);
        if (speedup > 0) result.baseline.speedup = speedup;
        return Remarker(shipped).on_result(config, scenario, result);
    };
    const std::vector<std::string> by_default = notes(Json::object(), 0);
    REQUIRE(by_default.size() == 1);
    CHECK_THAT(
        by_default[0],
        Equals("host threads: if one thread enqueues for all GPUs (--host replay), it takes 28 % longer"));
    // Where a host was asked for, where the order changes nothing, and where it changes little.
    CHECK(notes({{"host", "threads"}}, 0).empty());
    CHECK(notes({{"topology", "mi300x_8"}}, 0).empty());
    CHECK(notes({{"schedule", "shard_p2p"}}, 0).empty());
    const std::vector<std::string> odd = notes({{"schedule", "shard_p2p"}}, 2.5);
    REQUIRE(odd.size() == 1);
    CHECK_THAT(odd[0], Contains("a speed-up above 2 is more than overlap of two phases can give: serial"));
    CHECK(notes({{"schedule", "shard_p2p"}}, 1.99).empty());
}

}  // namespace overlap::test::remarks_test
