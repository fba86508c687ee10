// Does advice hold every candidate against the same baseline, and against the best of what was allowed?
#include "sim/advise/advise.hpp"

#include <catch2/catch.hpp>

#include "sim/run/resolver.hpp"
#include "tests/test_support.hpp"
#include "tests/schema.hpp"

using namespace overlap;
using namespace overlap::test;

namespace {

SimulatedAdvice advice_for(const Json& config, std::span<const std::string> agents = {},
                           std::size_t top = 3) {
    Json json{{"schedule", "serial"}, {"seeds", 3}};
    json.update(config);
    return advise(resolve(read_run_config(json, "test"), shipped), shipped, top, agents);
}

Json gemm_of(std::int64_t m, std::int64_t n, std::int64_t k) {
    return {{"collective", "all_gather"}, {"gemm", {{"m", m}, {"n", n}, {"k", k}, {"dtype", "bf16"}}}};
}

const Json small_on_h200{{"topology", "h200_4"}, {"workload", gemm_of(2048, 4096, 6144)}};
const std::vector<std::string> dma{"dma"};

void check_schema(const Json& json) {
    static const Schema schema("advice");
    CHECK(schema.errors(nlohmann::json::parse(json.dump()), "advice") == "");
}

}  // namespace

TEST_CASE("all speed-ups of an advice are over one baseline, the fastest serial execution", "[advise]") {
    const SimulatedAdvice advice = advice_for(small_on_h200, {}, 8);
    const Seconds baseline = advice.baseline.serial.makespan;
    REQUIRE(advice.best.size() == 8);
    for (const RunResult& run : advice.best) {
        CHECK(run.serial == baseline);
        CHECK(run.speedup == Approx(baseline / run.makespan).epsilon(1e-12));
    }
    std::size_t serial = 0;
    for (const RankedCandidate& one : advice.ranked)
        if (one.candidate.schedule == "serial") {
            CHECK(one.makespan >= baseline);
            ++serial;
        }
    CHECK(serial >= 3);  // pulled, pushed, by kernels
    const Json json = to_json(advice);
    check_schema(json);
    std::size_t candidates = 0;
    for (const Json& one : json.at("candidates")) {
        const double makespan = one.at("makespan_us").get<double>();
        CHECK(one.at("speedup").get<double>() == Approx(to_microseconds(baseline) / makespan).epsilon(1e-12));
        ++candidates;
    }
    CHECK(candidates == advice.ranked.size());
    CHECK(json.at("baseline").at("allowed") == true);
    CHECK_THAT(to_text(advice), Catch::Contains("speed-up over " + advice.baseline.serial.candidate.label()));
}

TEST_CASE("a library that was measured is a candidate", "[advise]") {
    const Candidate library{"serial", 0, "cu", "push", "", true};
    CHECK(library.label() == "serial/-/library");
    CHECK(parse_candidate(library.label(), "test") == library);
    const auto with_library = [&](const SimulatedAdvice& advice) {
        return std::any_of(advice.ranked.begin(), advice.ranked.end(),
                           [&](const auto& one) { return one.candidate == library; });
    };
    const SimulatedAdvice advice = advice_for(small_on_h200);
    CHECK(with_library(advice));
    const auto at = std::find_if(advice.ranked.begin(), advice.ranked.end(),
                                 [&](const auto& one) { return one.candidate == library; });
    REQUIRE(at != advice.ranked.end());
    Json config = small_on_h200;
    config.update(Json{{"schedule", "serial"}, {"seeds", 3}, {"params", {{"algorithm", "library"}}}});
    CHECK(run(resolve(read_run_config(config, "test"), shipped)).makespan == at->makespan);
    // None of MI250X; none by DMA engines; none between nodes, where the measurement isn't from.
    CHECK_FALSE(
        with_library(advice_for({{"topology", "mi250x_8"}, {"workload", gemm_of(4096, 4096, 4096)}})));
    CHECK_FALSE(with_library(advice_for(small_on_h200, dma)));
    CHECK(
        library_candidates(Workload{"", "", pair_of(CollectiveKind::all_gather, Order::collective_first, {})},
                           shipped.topology("mi300x_16"))
            .empty());
}

TEST_CASE("no regret is negative: what was not allowed has none", "[advise]") {
    int left_out = 0, judged = 0;
    for (const std::vector<std::string>& agents : {std::vector<std::string>(), dma, {"cu"}})
        for (const char* topology : {"h200_4", "mi300x_8"})
            for (const char* workload : {"llama3_70b_attn_out_forward", "llama3_70b_down_forward"}) {
                const SimulatedAdvice advice =
                    advice_for({{"topology", topology}, {"workload", workload}}, agents, 1);
                INFO(topology << " " << workload << " " << Json(agents).dump());
                check_schema(to_json(advice));
                for (const auto& said : {advice.heuristic, advice.heuristic_library}) {
                    REQUIRE(said);
                    const bool allowed = agents.empty() || agents.front() == said->said.candidate.agent;
                    CHECK(said->regret.has_value() == allowed);
                    if (allowed) CHECK(*said->regret >= 0);
                    ++(allowed ? judged : left_out);
                }
                if (!agents.empty())
                    for (const RankedCandidate& one : advice.ranked)
                        CHECK(one.candidate.agent == agents.front());
            }
    CHECK(left_out >= 4);
    CHECK(judged >= 4);
}
