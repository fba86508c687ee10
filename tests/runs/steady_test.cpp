#include "sim/run/steady.hpp"
#include "sim/topology/device_losses.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::steady_test {

using Catch::Contains;

namespace {

RunResult run_of(const Json& workload, const Json& more = Json::object(),
                 const std::string& topology = "h200_2") {
    Json json{{"topology", topology}, {"schedule", "serial"}, {"workload", workload}, {"repeat", "steady"}};
    json.update(more);
    return run(resolve(read_run_config(json, "x.json"), shipped), {.record = false});
}

Json gemm(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& dtype = "bf16") {
    return {
        {"operators", {{{"name", "g"}, {"type", "gemm"}, {"m", m}, {"n", n}, {"k", k}, {"dtype", dtype}}}}};
}

const Json stream{
    {"operators", {{{"name", "s"}, {"type", "memory_bound"}, {"read_bytes", 1e9}, {"write_bytes", 1e9}}}}};
const Json once{{"repeat", "once"}};

}  // namespace

TEST_CASE("a long GEMM runs at the speed at which its boards draw their limit") {
    const RunResult steady = run_of(gemm(8192, 8192, 8192));
    REQUIRE(steady.steady);
    const double speed = steady.steady->gemm_speed;
    CHECK(speed > 0.7);
    CHECK(speed < 0.95);
    CHECK(steady.steady->power.si() == Approx(700).epsilon(1e-3));
    // Two GPUs: 2 · 8192^3 FLOP each at 0.958464 pJ, less by speed^(2.7 - 1).
    const double compute = 2 * 2 * std::pow(8192.0, 3) * 0.958464e-12 * std::pow(speed, 1.7);
    CHECK(steady.used.energy->compute.si() == Approx(compute));
    // idle, active and compute over the makespan, HBM in addition, are 700 W a GPU.
    CHECK(steady.used.energy->total() / (2 * steady.makespan) == steady.steady->power);
    CHECK(steady.used.energy->power_limit == Joules());
}

TEST_CASE("work below the limit keeps the clock of a cool GPU") {
    const RunResult steady = run_of(stream);
    CHECK(steady.steady->gemm_speed == 1);
    CHECK(steady.steady->power.si() < 700);
    CHECK(steady.makespan == run_of(stream, once).makespan);
    const Json no_limit{{"what_if", {{"device.board_power_W", 2000}}}};
    CHECK(run_of(gemm(8192, 8192, 8192), no_limit).steady->gemm_speed == 1);
}

TEST_CASE("a lower limit and more work in the same time cost speed") {
    const auto limit = [](double watts) { return Json{{"what_if", {{"device.board_power_W", watts}}}}; };
    const RunResult at_700 = run_of(gemm(8192, 8192, 8192)),
                    at_500 = run_of(gemm(8192, 8192, 8192), limit(500));
    CHECK(at_500.steady->gemm_speed < at_700.steady->gemm_speed);
    CHECK(at_500.makespan > at_700.makespan);
    Json with_copy = gemm(8192, 8192, 8192);
    with_copy["operators"].push_back(stream["operators"][0]);
    with_copy["operators"][1]["needs"] = {"g"};
    CHECK(run_of(with_copy).steady->gemm_speed >
          at_700.steady->gemm_speed);  // the copy draws less than the GEMM
}

TEST_CASE("a benchmark's pause cools the GPUs, and no result counts its time") {
    const TemporaryFolder folder;
    const auto after = [&](double pause_us) {
        const std::string file = folder / "pauses.json";
        std::ofstream(file) << Json{{"schema", 1},
                                    {"name", "pauses"},
                                    {"description", "One thread."},
                                    {"threads", "one"},
                                    {"pause_us", {{"value", pause_us}, {"source", "test only"}}}};
        return run_of(gemm(8192, 8192, 8192), {{"host", file}});
    };
    const RunResult none = after(0), some = after(500), long_rest = after(1e5);
    CHECK(none.makespan > some.makespan);
    CHECK(long_rest.steady->gemm_speed == 1);
    // The limit is met over run and pause: makespan · power + 500 us · idle = (makespan + 500 us) · 700 W.
    const double seconds = some.makespan.si(), idle = shipped.device("h200").energy->idle.si();
    const double running = some.used.energy->total().si() / (2 * seconds);
    CHECK((seconds * running + 500e-6 * idle) / (seconds + 500e-6) == Approx(700).epsilon(1e-3));
}

TEST_CASE("overlap gains less in a steady state, and the loss has a name") {
    const Json pair{{"collective", "all_gather"},
                    {"gemm", {{"m", 8192}, {"n", 14336}, {"k", 8192}, {"dtype", "bf16"}}}};
    const Json overlapped{{"schedule", "async_tp"}};
    const RunResult steady = run_of(pair, overlapped);
    Json cool_config = overlapped;
    cool_config.update(once);
    const RunResult cool = run_of(pair, cool_config);
    CHECK(steady.baseline.speedup < cool.baseline.speedup);
    CHECK(steady.losses.power > Seconds());
    CHECK(cool.losses.power == Seconds());
    const Losses& l = steady.losses;
    const Seconds sum =
        l.contention + l.launch + l.packing + l.decomposition + l.pattern + l.fill_drain + l.power;
    CHECK(sum.si() == Approx((steady.makespan - steady.ideal).si()));
}

TEST_CASE("a steady state is refused where power was not measured") {
    const auto refused = [](const Json& workload, const std::string& topology) {
        return error_of([&] { run_of(workload, Json::object(), topology); });
    };
    CHECK_THAT(
        refused(gemm(8192, 8192, 8192), "mi300x_8"),
        Contains("x.json: /repeat: is \"steady\", but for device mi300x what power its work takes was not"));
    CHECK_THAT(refused(gemm(8192, 8192, 8192, "fp8"), "h100_8"), Contains("a FLOP of fp8 was not measured"));
    CHECK_THAT(refused(gemm(8192, 8192, 8192), "h100_64_rail"), Contains("the power of NICs is not known"));
}

}  // namespace overlap::test::steady_test
