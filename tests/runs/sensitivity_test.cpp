// Is the sensitivity of a run what its changed runs say, in the documented form?
#include "sim/sensitivity/sensitivity.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>

#include "tests/schema.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::sensitivity_test {
namespace {

/// A GEMM of almost nothing beside an all-gather of 2 GB by DMA: links and engines decide.
RunConfig config_of(const std::string& topology) {
    const Json gemm{{"m", 65536}, {"n", 1}, {"k", 16384}, {"dtype", "bf16"}};
    return read_run_config({{"topology", topology},
                            {"schedule", "shard_p2p"},
                            {"params", {{"agent", "dma"}}},
                            {"seeds", 3},
                            {"workload", {{"collective", "all_gather"}, {"gemm", gemm}}}},
                           "test");
}

}  // namespace

TEST_CASE("the slower links of a run by links matter most, and by as much as they are slower",
          "[sensitivity]") {
    std::atomic<std::size_t> told{0};
    const auto count = [&](std::size_t) { ++told; };
    const Sensitivity result =
        sensitivity(std::array{CountedRun{config_of("mi300x_8")}}, {"shard_p2p"}, 0.1, "", shipped, count);
    CHECK(told == 2 * result.values.size());
    REQUIRE(result.values.size() > 50);
    const Influence& first = result.values.front();
    CHECK(first.key == "topology.fabric.0.bandwidth_GBps");
    // Bytes over 0.9 of the rate take 1/0.9 of the time; latencies of some 10 us of 40 ms stay.
    CHECK(first.low.makespan / result.makespan == Approx(1 / 0.9).epsilon(2e-3));
    CHECK(first.effect == Approx(first.low.makespan / result.makespan - 1));
    CHECK(std::none_of(result.values.begin(), result.values.end(),
                       [](const Influence& one) { return one.key.find("gemm.fp8") != std::string::npos; }));
}

TEST_CASE("a sensitivity is as its schema says", "[sensitivity]") {
    const Schema schema("sensitivity");
    for (const std::string topology : {"mi300x_8", "h200_4"}) {
        const Sensitivity result = sensitivity(std::array{CountedRun{config_of(topology)}},
                                               {"serial", "shard_p2p"}, 0.5, "", shipped, [](std::size_t) {});
        CHECK(schema.errors(nlohmann::json::parse(to_json(result).dump()), "sensitivity") == "");
        // Some shares may not grow by half: they say so. MI300X's bf16 GEMMs have none.
        if (topology == "mi300x_8") continue;
        CHECK(std::any_of(result.values.begin(), result.values.end(),
                          [](const Influence& one) { return !one.high.refusal.empty(); }));
    }
}

}  // namespace overlap::test::sensitivity_test
