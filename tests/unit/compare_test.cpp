// The statistics of a comparison are checked with cases whose errors are chosen: a case that measures what is
// predicted for it, times a factor.
#include "sim/compare/compare_cases.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/resolved.hpp"

namespace overlap::test::compare_test {
namespace {

MeasuredCase case_of(const std::string& schedule, int m, double factor, const std::string& agent = "dma") {
    MeasuredCase result;
    result.origin = schedule;
    result.system = "made_up";
    result.config.origin = schedule;
    result.config.topology = "mi300x_8";
    result.config.schedule = schedule;
    result.config.params = {{"agent", agent}};
    result.config.workload = {{"collective", "all_gather"},
                              {"gemm", {{"m", m}, {"n", 1024}, {"k", 1024}, {"dtype", "bf16"}}}};
    const Seconds predicted = predict(resolved(result.config)).makespan;
    result.runs = {{"", {predicted * (1 / (1 + factor))}}};
    return result;
}

}  // namespace

TEST_CASE("errors are summarised by their size and their sign") {
    const ErrorSummary errors = summarise(std::vector<double>{0.1, -0.2, 0.3, -0.4, 0, 0, 0, 0, 0, 0});
    CHECK(errors.count == 10);
    CHECK(errors.mean == Approx(0.1));
    CHECK(errors.median == Approx(0.0));
    CHECK(errors.p90 == Approx(0.4));  // what nine of ten are below: 0 0 0 0 0 0 0.1 0.2 0.3 0.4
    CHECK(errors.bias == Approx(-0.02));
    CHECK(summarise(std::vector<double>()).count == 0);
}

TEST_CASE("a comparison gives each case its error, and groups them") {
    const Comparison comparison =
        compare({case_of("serial", 8192, 0.10), case_of("shard_direct", 8192, -0.05, "cu"),
                 case_of("serial", 16384, 0)},
                shipped);
    REQUIRE(comparison.cases.size() == 3);
    CHECK(comparison.cases[0].error == Approx(0.10));
    CHECK(comparison.cases[1].error == Approx(-0.05));
    CHECK(comparison.all.mean == Approx(0.05));
    CHECK(comparison.all.bias == Approx(0.05 / 3));
    const auto group = [&](const std::string& key, const std::string& value) {
        for (const GroupErrors& one : comparison.groups)
            if (one.key == key && one.value == value) return one.errors;
        return ErrorSummary();
    };
    CHECK(group("schedule", "serial").count == 2);
    CHECK(group("schedule", "serial").mean == Approx(0.05));
    CHECK(group("agent", "cu").bias == Approx(-0.05));
    CHECK(group("operator", "all_gather > gemm").count == 3);
}

TEST_CASE("regret is what choosing by prediction costs") {
    // The predicted order is serial, then shard_p2p (7 times the transfers on a mesh). Measured the other way
    // round: shard_p2p has half of serial's measured time.
    MeasuredCase serial = case_of("serial", 8192, 0), p2p = case_of("shard_p2p", 8192, 0);
    p2p.runs = {{"", {serial.makespan() * 0.5}}};
    const Comparison wrong = compare({serial, p2p}, shipped);
    REQUIRE(wrong.scenarios.size() == 1);
    CHECK(wrong.scenarios[0].predicted_best.starts_with("serial"));
    CHECK(wrong.scenarios[0].measured_best.starts_with("shard_p2p"));
    CHECK(wrong.ranking.mean_regret == Approx(1.0));
    CHECK(wrong.ranking.best_within_2pct == 0);

    const Comparison right =
        compare({serial, case_of("shard_p2p", 8192, 0.2), case_of("shard_direct", 8192, 0)}, shipped);
    CHECK(right.ranking.mean_regret == Approx(0).margin(1e-12));
    CHECK(right.ranking.best_within_2pct == 1);
    REQUIRE(right.scenarios[0].rank_correlation);
    CHECK(*right.scenarios[0].rank_correlation == Approx(1));
}

TEST_CASE("operator lists of other sizes are other scenarios, also where they have the same name") {
    const auto collective = [](int bytes) {
        MeasuredCase one = case_of("serial", 8192, 0);
        one.config.params = Json::object();
        one.config.workload = {{"operators",
                                {{{"name", "c"},
                                  {"type", "collective"},
                                  {"collective", "all_gather"},
                                  {"bytes", bytes},
                                  {"dtype", "bf16"},
                                  {"needs", Json::array()}}}}};
        return one;
    };
    CHECK(compare({collective(1 << 20), collective(1 << 24)}, shipped).ranking.scenarios == 0);
    CHECK(compare({collective(1 << 20), collective(1 << 20)}, shipped).ranking.scenarios == 1);
}

TEST_CASE("spans are compared task by task, and the first divergence is found") {
    MeasuredCase one = case_of("shard_direct", 8192, 0);
    const Timeline predicted = predict(resolved(one.config)).timeline;
    std::vector<Span> spans = predicted.spans();
    one.timeline = Timeline(spans);
    const ComparedCase same = compare({one}, shipped).cases.front();
    REQUIRE(same.spans.errors);
    CHECK(!same.spans.errors->first);
    CHECK(same.spans.errors->only_measured == 0);
    CHECK(same.spans.errors->only_predicted == 0);
    CHECK(summarise(same.spans.errors->by_kind.at("gemm")).mean == Approx(0).margin(1e-12));

    // From the middle on everything is later by a tenth of the makespan.
    const Seconds middle = 0.5 * predicted.end(), late = 0.1 * predicted.end();
    const Span* expected = nullptr;
    for (std::size_t i = 0; i < spans.size(); ++i) {
        if (spans[i].start < middle) continue;
        if (expected == nullptr || predicted.spans()[i].end < expected->end) expected = &predicted.spans()[i];
        spans[i].start += late;
        spans[i].end += late;
    }
    REQUIRE(expected != nullptr);
    spans.push_back({"nobody's", TaskKind::reduce, 0, "compute", Seconds(), middle});
    one.timeline = Timeline(spans);
    const ComparedCase off = compare({one}, shipped).cases.front();
    REQUIRE(off.spans.errors->first);
    CHECK(off.spans.errors->first->measured_end.si() == Approx((expected->end + late).si()));
    CHECK(off.spans.errors->first->predicted_end.si() == Approx(expected->end.si()));
    CHECK(off.spans.errors->only_measured == 1);
}

TEST_CASE("claims are judged: met, outside, known gap, gap no more") {
    const TemporaryFolder folder;
    const auto verdict = [&](const std::string& claim) {
        std::ofstream(folder / "t.json") << R"({"schema": 2, "claims": [)" << claim << "]}";
        const Comparison comparison =
            compare({case_of("serial", 8192, 0.10), case_of("shard_p2p", 8192, 0)}, shipped);
        return judge(comparison, folder / "t.json").front();
    };
    const std::string serial = R"("where": {"schedule": "serial"}, "metric": "mean_abs_pct")";  // is 10 %
    const auto standing = [&](const std::string& rest) {
        return verdict("{" + serial + rest + "}").standing();
    };
    const std::string enforced = R"(, "status": "enforced")",
                      gap = R"(, "status": "known_gap", "reason": "r")";
    CHECK(standing(R"(, "asked": 11)" + enforced) == Standing::met);
    CHECK(standing(R"(, "asked": 9)" + enforced) == Standing::outside);
    CHECK(standing(R"(, "asked": 9, "reached": 10)" + gap) == Standing::known_gap);
    CHECK(standing(R"(, "asked": 11, "reached": 10)" + gap) == Standing::closed_gap);
    // A twentieth of 10.5 is 0.525, of 10.6 0.53: 10 is as reached of the one, not of the other.
    const std::vector<std::pair<std::string, bool>> reached_before{
        {"9.4", false}, {"9.6", true}, {"10.5", true}, {"10.6", false}};
    for (const auto& [reached, holds] : reached_before) {
        const std::string was = R"(, "reached": )" + reached;
        CHECK((standing(R"(, "asked": 11)" + was + enforced) == Standing::met) == holds);
        CHECK((standing(R"(, "asked": 9)" + was + gap) == Standing::known_gap) == holds);
        CHECK(verdict("{" + serial + R"(, "asked": 9)" + was + gap + "}").fails() == !holds);
    }
    CHECK(!verdict(R"({"metric": "best_within_2pct", "asked": 100, "status": "enforced"})").fails());
    const auto error = [&](const std::string& claim) { return error_of([&] { verdict(claim); }); };
    CHECK(
        error(
            R"({"where": {"schedule": "ring"}, "metric": "bias_abs_pct", "asked": 1, "status": "enforced"})")
            .find("no case has these labels") != std::string::npos);
    CHECK(
        error(
            R"({"where": {"shedule": "serial"}, "metric": "bias_abs_pct", "asked": 1, "status": "enforced"})")
            .find("'schedule'") != std::string::npos);
    CHECK_THAT(error("{" + serial + R"(, "asked": 9, "reached": 10, "status": "known_gap"})"),
               Catch::Contains("/claims/0/reason"));
    CHECK_THAT(error("{" + serial + R"(, "asked": 9, "status": "known_gap", "reason": "r"})"),
               Catch::Contains("/claims/0/reached"));
    CHECK_THAT(error("{" + serial + R"(, "limit": 9, "status": "enforced"})"),
               Catch::Contains("/claims/0/asked"));
}

TEST_CASE("claims on single tasks are about how long those with spans last") {
    const TemporaryFolder folder;
    MeasuredCase one = case_of("shard_direct", 8192, 0);
    std::vector<Span> spans = predict(resolved(one.config)).timeline.spans();
    // Copies took 4/5 of what is predicted, GEMMs exactly that.
    for (Span& span : spans)
        if (span.kind == TaskKind::copy) span.end = span.start + 0.8 * (span.end - span.start);
    one.timeline = Timeline(spans);
    const Comparison comparison = compare({one, case_of("serial", 8192, 0.3)}, shipped);
    const auto value = [&](const std::string& where, const std::string& metric) {
        std::ofstream(folder / "t.json")
            << R"({"schema": 2, "claims": [{"where": {)" << where << R"(}, "metric": ")" << metric
            << R"(", "asked": 5, "status": "enforced"}]})";
        return judge(comparison, folder / "t.json").front();
    };
    CHECK(value(R"("task": "copy")", "mean_abs_pct").value == Approx(25));
    CHECK(value(R"("task": "copy")", "mean_abs_pct").claim == "task=copy mean_abs_pct");
    CHECK(value(R"("task": "copy", "schedule": "shard_direct")", "bias_abs_pct").value == Approx(25));
    CHECK(value(R"("task": "gemm")", "p90_abs_pct").value == Approx(0).margin(1e-9));
    const auto error = [&](const std::string& where, const std::string& metric) {
        return error_of([&] { value(where, metric); });
    };
    CHECK_THAT(error(R"("task": "copy", "schedule": "serial")", "mean_abs_pct"),
               Catch::Contains("no case has these labels"));  // it has no spans
    CHECK_THAT(error(R"("task": "copies")", "mean_abs_pct"), Catch::Contains("allowed: gemm, copy"));
    CHECK_THAT(error(R"("task": "copy")", "mean_regret_pct"), Catch::Contains("no scenario"));
}

TEST_CASE("a case that can't be predicted is listed, with why") {
    MeasuredCase bad = case_of("serial", 8192, 0);
    bad.config.topology = "nowhere";
    const Comparison comparison = compare({bad, case_of("serial", 8192, 0)}, shipped);
    CHECK(comparison.cases.size() == 1);
    REQUIRE(comparison.not_predicted.size() == 1);
    CHECK(comparison.not_predicted[0].find("nowhere") != std::string::npos);
}

}  // namespace overlap::test::compare_test
