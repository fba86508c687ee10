// Does advice hold every candidate against the same baseline, and against the best of what was allowed?
#include "sim/advise/advise.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <sstream>

#include "tests/resolved.hpp"
#include "tests/schema.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::advise_test {
namespace {

SimulatedAdvice advice_for(const Json& config, const AllowedCandidates& allowed = {}, std::size_t top = 3) {
    Json json{{"schedule", "serial"}, {"seeds", 3}};
    json.update(config);
    return advise(resolved(read_run_config(json, "test")), shipped, top, allowed);
}

Json gemm_of(std::int64_t m, std::int64_t n, std::int64_t k) {
    return {{"collective", "all_gather"}, {"gemm", {{"m", m}, {"n", n}, {"k", k}, {"dtype", "bf16"}}}};
}

const Json small_on_h200{{"topology", "h200_4"}, {"workload", gemm_of(2048, 4096, 6144)}};
const AllowedCandidates dma{{"dma"}}, library_kernels{{}, false};

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
        CHECK(run.baseline.time == baseline);
        CHECK(run.baseline.speedup == Approx(baseline / run.makespan).epsilon(1e-12));
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
    CHECK(json.at("candidates").size() == advice.ranked.size());
    CHECK(json.at("baseline").at("allowed") == true);
}

namespace {

/// Checks every object of `json` with a time and a speed-up; returns their number.
std::size_t check_speedups(const Json& json, double baseline_us) {
    std::size_t checked = 0;
    if (json.is_object() && json.contains("speedup")) {
        CHECK(json.at("speedup").get<double>() * json.at("makespan_us").get<double>() ==
              Approx(baseline_us).epsilon(1e-12));
        if (json.contains("baseline_us"))
            CHECK(json.at("baseline_us").get<double>() == Approx(baseline_us).epsilon(1e-12));
        ++checked;
    }
    if (json.is_structured())
        for (const Json& member : json) checked += check_speedups(member, baseline_us);
    return checked;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::istringstream in(text);
    std::vector<std::string> parts;
    for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
    return parts;
}

}  // namespace

TEST_CASE("no two rows of one time have two speed-ups, whatever rendering and whatever is allowed",
          "[advise]") {
    for (const AllowedCandidates& allowed :
         {AllowedCandidates{}, dma, AllowedCandidates{{"cu"}}, library_kernels})
        for (const Json& config :
             {small_on_h200, Json{{"topology", "mi300x_8"}, {"workload", "llama3_70b_down_forward"}}}) {
            const SimulatedAdvice advice = advice_for(config, allowed, 12);
            INFO(config.dump() << Json(allowed.agents).dump() << allowed.own_kernels);
            const Json json = to_json(advice);
            check_schema(json);
            const double baseline_us = json.at("baseline").at("makespan_us").get<double>();
            CHECK(advice.best.size() >= 4);
            CHECK(!advice.presets.empty());
            for (const PresetTime& one : advice.presets) CHECK(!(one.own_kernel && !allowed.own_kernels));
            // The candidates, the runs, the presets, the baseline, and the three bests.
            CHECK(check_speedups(json, baseline_us) ==
                  advice.ranked.size() + advice.best.size() + advice.presets.size() + 1 + 3);

            const std::vector<std::string> csv = split(to_csv(advice), '\n');
            REQUIRE(csv.size() == 1 + advice.ranked.size());
            for (std::size_t i = 1; i < csv.size(); ++i) {
                const std::vector<std::string> row = split(csv[i], ',');
                CHECK(std::stod(row.at(7)) * std::stod(row.at(9)) == Approx(baseline_us).epsilon(1e-12));
            }

            std::map<std::string, std::vector<double>> speedups;  // by the time printed beside them
            for (const std::string& line : split(to_text(advice), '\n')) {
                const std::size_t at = line.find("   speed-up ");
                if (at == std::string::npos) continue;
                const std::string before = line.substr(0, std::min(at, line.find("  +")));
                speedups[before.substr(before.rfind("  "))].push_back(std::stod(line.substr(at + 12)));
            }
            CHECK(speedups.size() >= 3);
            for (const auto& [time, several] : speedups) {
                INFO(time);
                // Both are rounded to four digits, so times that differ by less print alike.
                const auto [least, most] = std::minmax_element(several.begin(), several.end());
                CHECK(*most - *least < 0.0015);
            }
        }
}

TEST_CASE("the vendor's library is in the baseline where it was measured, and is named", "[advise]") {
    const Json reduced{
        {"topology", "h200_4"}, {"workload", "llama3_70b_attn_out_forward"}, {"host", "replay"}};
    for (const AllowedCandidates& allowed : {AllowedCandidates{}, dma, library_kernels}) {
        const SimulatedAdvice advice = advice_for(reduced, allowed);
        CHECK(advice.baseline.with_library);
        CHECK(advice.baseline.allowed == allowed.agents.empty());
        CHECK(advice.baseline.serial.candidate.by_library());
        CHECK(to_json(advice).at("baseline").at("name") == "serial by NCCL 2.29.2");
        CHECK_THAT(to_text(advice), Catch::Contains("speed-up over serial by NCCL 2.29.2,"));
    }
    CHECK(to_json(advice_for({{"topology", "mi300x_8"}, {"workload", gemm_of(65536, 8192, 8192)}}))
              .at("baseline")
              .at("with_library") == true);
    // Of MI250X none, and between nodes none.
    for (const Json& config : {Json{{"topology", "mi250x_8"}, {"workload", gemm_of(4096, 4096, 4096)}},
                               Json{{"topology", "mi300x_16"}, {"workload", gemm_of(4096, 4096, 4096)}}}) {
        const SimulatedAdvice advice = advice_for(config);
        INFO(config.dump());
        check_schema(to_json(advice));
        CHECK_FALSE(advice.baseline.with_library);
        CHECK_THAT(to_text(advice), Catch::Contains("no measurement of the vendor's library"));
    }
    const Candidate library{"serial", 0, "cu", "push", "", "library"};
    CHECK(library.name("RCCL") == "serial by RCCL");
    CHECK(library.name("") == "serial/-/library");
    CHECK(Candidate{"serial", 0, "cu", "push", ""}.name("RCCL") == "serial/-/cu/push");
}

TEST_CASE("the next choice is another schedule, agent or kind of GEMMs", "[advise]") {
    const Candidate ring{"ring_chunked", 4, "dma", "pull", ""};
    CHECK(ring.same_choice({"ring_chunked", 8, "dma", "push", ""}));
    CHECK_FALSE(ring.same_choice({"ring_chunked", 4, "cu", "pull", ""}));
    CHECK_FALSE(ring.same_choice({"ring_chunked", 4, "dma", "pull", "chunk"}));
    CHECK_FALSE(ring.same_choice({"hetero_fused_1d", 4, "dma", "pull", ""}));
    CHECK_FALSE(
        Candidate{"serial", 0, "cu", "push", ""}.same_choice({"serial", 0, "cu", "push", "", "library"}));

    const SimulatedAdvice advice =
        advice_for({{"topology", "mi300x_8"}, {"workload", gemm_of(8192, 2560, 8192)}});
    const RankedCandidate& best = advice.ranked.front();
    REQUIRE(advice.next_choice);
    std::size_t passed_over = 0;
    for (const RankedCandidate& one : advice.ranked) {
        if (one.candidate == advice.next_choice->choice.candidate) break;
        CHECK(one.candidate.same_choice(best.candidate));
        ++passed_over;
    }
    CHECK(passed_over >= 4);  // pulled and pushed, in several numbers of chunks
    CHECK_FALSE(advice.next_choice->choice.candidate.same_choice(best.candidate));
    CHECK(advice.next_choice->margin == advice.next_choice->choice.makespan / best.makespan - 1);
    CHECK_THAT(to_text(advice),
               Catch::Contains("\nnext choice  " + advice.next_choice->choice.candidate.label() + "  +"));
    CHECK(to_json(advice).at("next_choice").at("margin") == advice.next_choice->margin);
}

TEST_CASE("a margin within the expected error is too close to call", "[advise]") {
    SimulatedAdvice advice =
        advice_for({{"topology", "h200_2"}, {"workload", gemm_of(8192, 2560, 8192)}}, library_kernels);
    REQUIRE(advice.next_choice);
    Confidence& confidence = advice.best.front().confidence;
    REQUIRE(confidence.measured);
    CHECK_THAT(to_text(advice), Catch::Contains("confidence GEMM bf16 "));
    CHECK(to_json(advice).at("best").at(0).at("confidence") == to_json(confidence));
    const auto judged = [&](double margin) {
        advice.next_choice->margin = margin;
        return to_json(advice).at("next_choice").at("too_close_to_call");
    };
    const double error = *confidence.makespan_error();
    CHECK(judged(0.9 * error) == true);
    CHECK_THAT(to_text(advice), Catch::Contains("too close to call"));
    CHECK(judged(1.1 * error) == false);
    CHECK_THAT(to_text(advice), !Catch::Contains("too close to call"));
    // Of a machine that nobody measured, by what makes the error there; without that it is not known.
    confidence.measured.reset();
    confidence.causes = {{"untested", 2 * error}};
    confidence.p90_over_mean = 2;
    CHECK(judged(1.9 * error) == true);
    CHECK(judged(2.1 * error) == false);
    confidence.p90_over_mean = 0;
    CHECK(judged(0.9 * error).is_null());
    CHECK_THAT(to_text(advice), Catch::Contains("whether errors exceed this is not known"));
}

TEST_CASE("kernels of one's own are named, and may be left out", "[advise]") {
    const Json config{{"topology", "mi300x_8"}, {"workload", gemm_of(8192, 2560, 8192)}};
    const SimulatedAdvice any = advice_for(config), library = advice_for(config, library_kernels);
    REQUIRE(any.ranked.front().candidate.own_kernel());
    REQUIRE(any.by_library_kernels);
    CHECK(any.by_library_kernels->candidate == library.ranked.front().candidate);
    CHECK(any.by_library_kernels->makespan == library.ranked.front().makespan);
    std::size_t own = 0;
    for (const RankedCandidate& one : any.ranked) own += one.candidate.own_kernel();
    CHECK(own > 0);
    CHECK(library.ranked.size() == any.ranked.size() - own);
    for (const RankedCandidate& one : library.ranked) CHECK_FALSE(one.candidate.own_kernel());

    const std::string text = to_text(any), without = to_text(library);
    CHECK_THAT(text, Catch::Contains(" speed-up 1.616   own kernel\n") && Catch::Contains("\nown kernel: ") &&
                         Catch::Contains("  best with library kernels"));
    CHECK_THAT(without, !Catch::Contains("\nown kernel: ") && !Catch::Contains("best with library kernels"));
    for (const Json& one : to_json(any).at("candidates"))
        CHECK(one.at("own_kernel") == (one.at("schedule") == "flag_gated"));
    // What runs with a vendor's GEMM library and copies, of all schedules.
    std::vector<std::string> own_kernels;
    for (const ScheduleEntry& entry : schedules())
        if (entry.own_kernel) own_kernels.push_back(entry.name);
    CHECK(own_kernels == std::vector<std::string>{"flag_gated", "t3", "work_group_fused"});
}

TEST_CASE("a library that was measured is a candidate", "[advise]") {
    const Candidate library{"serial", 0, "cu", "push", "", "library"};
    CHECK(library.label() == "serial/-/library");
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
    CHECK(run(resolved(read_run_config(config, "test"))).makespan == at->makespan);
    // None of MI250X; none by DMA engines; none between nodes, where the measurement isn't from.
    CHECK_FALSE(
        with_library(advice_for({{"topology", "mi250x_8"}, {"workload", gemm_of(4096, 4096, 4096)}})));
    CHECK_FALSE(with_library(advice_for(small_on_h200, dma)));
    CHECK(
        library_candidates(Workload{"", "", pair_of(CollectiveKind::all_gather, Order::collective_first, {})},
                           shipped.topology("mi300x_16"))
            .empty());
}

TEST_CASE("only candidates of the agents that are asked for are ranked", "[advise]") {
    for (const std::string agent : {"dma", "cu"})
        for (const char* topology : {"h200_4", "mi300x_8"}) {
            const SimulatedAdvice advice = advice_for(
                {{"topology", topology}, {"workload", "llama3_70b_attn_out_forward"}}, {{agent}}, 1);
            check_schema(to_json(advice));
            for (const RankedCandidate& one : advice.ranked) CHECK(one.candidate.agent == agent);
        }
}

}  // namespace overlap::test::advise_test
