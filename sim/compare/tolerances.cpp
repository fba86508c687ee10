#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/compare/compare_cases.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

/// No label of cases: such a claim is about single tasks of that kind, in cases with spans.
const std::string task_label = "task";

Labels read_where(ConfigObject object) {
    std::vector<std::string> known = comparison_labels();
    known.push_back(task_label);
    Labels where;
    for (const std::string& key : object.keys()) {
        if (!contains(known, key)) object.fail(key, "is not a label of a case" + suggestion(key, known));
        where.emplace_back(
            key, key == task_label ? task_kind_names[object.choice(key, task_kind_names)] : object.text(key));
    }
    object.finish();
    return where;
}

/// The cases of a claim with their own summary.
struct Selection {
    ErrorSummary errors;
    double best_within_2pct = 0, mean_regret = 0;
    std::size_t scenarios = 0;
};

Selection select(const Comparison& comparison, const Labels& where) {
    Comparison some;
    std::optional<std::string> task;
    for (const ComparedCase& one : comparison.cases) {
        const bool taken = std::ranges::all_of(where, [&](const auto& label) {
            if (label.first == task_label) task = label.second;
            return label.first == task_label || one.labels.at(label.first) == label.second;
        });
        if (!taken) continue;
        ComparedCase slim = one;
        slim.measured_timeline = slim.predicted_timeline = Timeline();
        some.cases.push_back(std::move(slim));
    }
    summarise(some);
    if (task) return {some.by_task_kind[*task], 0, 0, 0};
    return {some.all, some.ranking.best_within_2pct, some.ranking.mean_regret, some.ranking.scenarios};
}

struct Metric {
    std::string name;
    double (*value)(const Selection&);
    bool at_least = false;      ///< the limit is a lower bound
    bool of_scenarios = false;  ///< needs scenarios with two cases or more
};

const std::vector<Metric>& metrics() {
    static const std::vector<Metric> all{
        {"mean_abs_pct", [](const Selection& s) { return 100 * s.errors.mean; }},
        {"p90_abs_pct", [](const Selection& s) { return 100 * s.errors.p90; }},
        {"bias_abs_pct", [](const Selection& s) { return 100 * std::abs(s.errors.bias); }},
        {"best_within_2pct", [](const Selection& s) { return 100 * s.best_within_2pct; }, true, true},
        {"mean_regret_pct", [](const Selection& s) { return 100 * s.mean_regret; }, false, true}};
    return all;
}

struct ToleranceClaim {
    ConfigObject at;
    Labels where;
    const Metric* metric;
    Verdict verdict;  ///< but for the value
};

ToleranceClaim read_claim(ConfigObject claim) {
    const std::array<std::string, 2> states{"enforced", "known_gap"};
    const Labels where = claim.has("where") ? read_where(claim.object("where")) : Labels();
    const Metric& metric = metrics()[claim.choice("metric", mapped(metrics(), &Metric::name))];
    Verdict verdict;
    verdict.at_least = metric.at_least;
    verdict.asked = claim.number("asked", non_negative);
    verdict.known_gap = claim.choice("status", states) == 1;
    // The size of a gap is part of the claim.
    if (verdict.known_gap || claim.has("reached")) verdict.reached = claim.number("reached", non_negative);
    if (verdict.known_gap || claim.has("reason")) verdict.reason = claim.text("reason");
    claim.finish();
    for (const auto& [key, value] : where) verdict.claim += key + "=" + value + " ";
    verdict.claim += metric.name;
    return {std::move(claim), where, &metric, verdict};
}

Verdict judge_claim(const Comparison& comparison, ToleranceClaim claim) {
    const Selection selection = select(comparison, claim.where);
    if (selection.errors.count == 0) claim.at.fail("where", "no case has these labels");
    if (claim.metric->of_scenarios && selection.scenarios == 0)
        claim.at.fail("metric", "no scenario here has two cases to choose from");
    claim.verdict.value = claim.metric->value(selection);
    return claim.verdict;
}

/// Factor by which a prediction may be too long or too short without a tolerance. The worst measured case is
/// off by 1.9 times (README); beyond this factor the scenario does not describe the measurement.
constexpr double plausible_factor = 5;

/// A failing claim for a case that is implausibly far off.
std::optional<Verdict> judge_plausible(const ComparedCase& one) {
    const double factor = one.predicted / one.measured;
    if (factor <= plausible_factor && factor >= 1 / plausible_factor) return std::nullopt;
    Verdict verdict;
    verdict.claim = one.scenario + ", " + one.name + " (" + one.origin +
                    "): the longer of predicted and measured in % of the shorter; is the scenario what was "
                    "measured, and the makespan of one run?";
    verdict.asked = 100 * plausible_factor;
    verdict.value = 100 * std::max(factor, 1 / factor);
    return verdict;
}

}  // namespace

std::vector<Verdict> judge(const Comparison& comparison, const std::filesystem::path& tolerances) {
    std::vector<Verdict> verdicts = judge_cases(comparison);
    const Json json = upgraded(read_json_file(tolerances), "tolerances", tolerances.string());
    ConfigObject object(json, tolerances.string());
    object.integer("schema", newest_version("tolerances"), newest_version("tolerances"));
    if (object.has("description")) object.text("description");
    std::vector<ToleranceClaim> claims;
    for (ConfigObject& claim : object.objects("claims")) claims.push_back(read_claim(std::move(claim)));
    object.finish();
    for (ToleranceClaim& claim : claims) verdicts.push_back(judge_claim(comparison, std::move(claim)));
    return verdicts;
}

std::vector<Verdict> judge_cases(const Comparison& comparison) {
    std::vector<Verdict> verdicts;
    for (const ComparedCase& one : comparison.cases) {
        if (!one.tolerance) {
            if (std::optional<Verdict> verdict = judge_plausible(one)) verdicts.push_back(*verdict);
            continue;
        }
        Verdict verdict;
        verdict.claim = one.scenario + ", " + one.name + ": error";
        verdict.asked = 100 * *one.tolerance;
        verdict.value = 100 * std::abs(one.error);
        verdict.known_gap = one.known_gap;
        verdict.reason = one.reason;
        verdicts.push_back(std::move(verdict));
    }
    return verdicts;
}

}  // namespace overlap
