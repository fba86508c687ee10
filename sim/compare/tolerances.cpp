#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/compare/compare_cases.hpp"
#include "sim/core/input_keys.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

/// No label of cases: such a claim is about single tasks of that kind, in cases with spans.
const std::string task_label = "task";

Labels read_where(ConfigObject object) {
    std::vector<std::string> known = comparison_labels;
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
    RankingSummary ranking;
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
        slim.spans.measured = slim.spans.predicted = Timeline();
        some.cases.push_back(std::move(slim));
    }
    summarise(some);
    if (task) return {some.by_task_kind[*task], {}};
    return {some.all, some.ranking};
}

struct Metric {
    std::string name;
    double (*value)(const Selection&);
    bool at_least = false;      ///< the limit is a lower bound
    bool of_scenarios = false;  ///< needs scenarios with two cases or more
};

const std::vector<Metric> metrics{
    {"mean_abs_pct", [](const Selection& s) { return 100 * s.errors.mean; }},
    {"p90_abs_pct", [](const Selection& s) { return 100 * s.errors.p90; }},
    {"bias_abs_pct", [](const Selection& s) { return 100 * std::abs(s.errors.bias); }},
    {"best_within_2pct", [](const Selection& s) { return 100 * s.ranking.best_within_2pct; }, true, true},
    {"mean_regret_pct", [](const Selection& s) { return 100 * s.ranking.mean_regret; }, false, true}};

/// A claim as the file has it: a verdict whose value is not known yet.
struct ToleranceClaim : Verdict {
    Labels where;
    const Metric* metric = nullptr;
};

// clang-format off
Json where_schema() {
    Json where = object_schema("Only cases with these labels; all where absent.");
    for (const std::string& label : comparison_labels) where["properties"][label] = {{"type", "string"}};
    where["properties"][task_label] = choice_of(task_kind_names, "The claim is about how long single tasks of this kind last, in cases with spans.");
    return where;
}

InputKeys<ToleranceClaim> claim_keys() {
    using C = ToleranceClaim;
    static const std::vector<std::string> names = mapped(metrics, &Metric::name);
    static const std::vector<InputKey<C>> keys{
        InputKey<C>("where", where_schema(), [](ConfigObject& from, const std::string& key, C& to) { to.where = read_where(from.object(key)); }).optional(),
        {"metric", choice_of(names, "In %. Upper limits, except best_within_2pct: share of scenarios whose predicted best schedule is within 2 % of the measured best."),
            [](ConfigObject& from, const std::string& key, C& to) {
                to.metric = &metrics[from.choice(key, names)];
                to.at_least = to.metric->at_least;
            }},
        field<&C::asked>("asked", "What was asked for, which does not follow what comes out.").plain_in(non_negative),
        // The size of a gap is part of the claim.
        InputKey<C>("reached", number_from(0, "What came out when the claim was written. A value that differs by more than a twentieth of it (at least 0.1) fails, for better or worse."),
            [](ConfigObject& from, const std::string& key, C& to) { to.reached = from.number(key, non_negative); }).only_of_gap(),
        plain_field<&C::known_gap>("status", gap_states, "enforced: what was asked for must be met. known_gap: it must not be, and the claim fails once it is."),
        text_key<C>("reason", &C::reason, "Why there is a gap.").only_of_gap()};
    return keys;
}

struct ToleranceFile {
    std::vector<std::pair<ConfigObject, ToleranceClaim>> claims;
};
InputKeys<ToleranceFile> tolerance_file_keys() {
    using F = ToleranceFile;
    static const std::vector<InputKey<F>> keys{
        version_key<F>("tolerances", " 1 had 'limit' where 2 has 'asked', and no 'reached'."),
        text_key<F>("description", "What the claims are about.").optional(),
        {"claims", {{"type", "array"}, {"items", keys_schema("", claim_keys())}}, [](ConfigObject& from, const std::string& key, F& to) {
            for (ConfigObject& claim : from.objects(key)) to.claims.emplace_back(claim, read_keys<ToleranceClaim>(claim, claim_keys()));
        }}};
    return keys;
}
// clang-format on

Verdict judge_claim(const Comparison& comparison, const ConfigObject& at, ToleranceClaim claim) {
    const Selection selection = select(comparison, claim.where);
    if (selection.errors.count == 0) at.fail("where", "no case has these labels");
    if (claim.metric->of_scenarios && selection.ranking.scenarios == 0)
        at.fail("metric", "no scenario here has two cases to choose from");
    for (const auto& [key, value] : claim.where) claim.claim += key + "=" + value + " ";
    claim.claim += claim.metric->name;
    claim.value = claim.metric->value(selection);
    return claim;
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
    for (const auto& [at, claim] : read_keys<ToleranceFile>(object, tolerance_file_keys()).claims)
        verdicts.push_back(judge_claim(comparison, at, claim));
    return verdicts;
}

Json tolerances_schema() {
    return file_of_keys("Tolerances",
                        "Claims on a comparison of predicted with measured cases (sim compare --tolerances).",
                        tolerance_file_keys());
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
        verdict.asked = 100 * one.tolerance->error;
        verdict.value = 100 * std::abs(one.error);
        verdict.known_gap = one.tolerance->known_gap;
        verdict.reason = one.tolerance->reason;
        verdicts.push_back(std::move(verdict));
    }
    return verdicts;
}

}  // namespace overlap
