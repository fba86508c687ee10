#include <algorithm>

#include "sim/compare/compare_cases.hpp"

namespace overlap {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

Labels read_where(ConfigObject object) {
    Labels where;
    for (const std::string& key : object.keys()) {
        const std::vector<std::string>& known = comparison_labels();
        if (std::find(known.begin(), known.end(), key) == known.end())
            object.fail(key, "is not a label of a case" + suggestion(key, known));
        where.emplace_back(key, object.text(key));
    }
    object.finish();
    return where;
}

/// The cases that a claim is about, summarised anew.
struct Selection {
    ErrorSummary errors;
    double best_within_2pct = 0, mean_regret = 0;
    std::size_t scenarios = 0;
};

Selection select(const Comparison& comparison, const Labels& where) {
    Comparison some;
    for (const ComparedCase& one : comparison.cases) {
        const bool taken = std::all_of(where.begin(), where.end(), [&](const auto& label) {
            return one.labels.at(label.first) == label.second;
        });
        if (!taken) continue;
        ComparedCase slim = one;
        slim.measured_timeline = slim.predicted_timeline = Timeline();
        some.cases.push_back(std::move(slim));
    }
    summarise(some);
    return {some.all, some.ranking.best_within_2pct, some.ranking.mean_regret, some.ranking.scenarios};
}

struct Metric {
    std::string name;
    double (*value)(const Selection&);
    bool at_least = false;      ///< the limit is a lower one
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

std::string rounded(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
}

Verdict judge_claim(const Comparison& comparison, ConfigObject& claim) {
    const std::array<std::string, 2> states{"enforced", "known_gap"};
    std::vector<std::string> names;
    for (const Metric& metric : metrics()) names.push_back(metric.name);
    const Labels where = claim.has("where") ? read_where(claim.object("where")) : Labels();
    const Metric& metric = metrics()[claim.choice("metric", names)];
    const double limit = claim.number("limit", non_negative);
    Verdict verdict;
    verdict.known_gap = claim.choice("status", states) == 1;
    if (verdict.known_gap || claim.has("reason")) verdict.reason = claim.text("reason");
    claim.finish();

    const Selection selection = select(comparison, where);
    if (selection.errors.count == 0) claim.fail("where", "no case has these labels");
    if (metric.of_scenarios && selection.scenarios == 0)
        claim.fail("metric", "no scenario here has two cases to choose from");
    verdict.value = metric.value(selection);
    verdict.met = metric.at_least ? verdict.value >= limit : verdict.value <= limit;
    for (const auto& [key, value] : where) verdict.claim += key + "=" + value + " ";
    verdict.claim += metric.name + (metric.at_least ? " >= " : " <= ") + rounded(limit);
    return verdict;
}

}  // namespace

std::vector<Verdict> judge(const Comparison& comparison, const std::filesystem::path& tolerances) {
    std::vector<Verdict> verdicts = judge_cases(comparison);
    const Json json = read_json_file(tolerances);
    ConfigObject object(json, tolerances.string());
    object.integer("schema", 1, 1);
    if (object.has("description")) object.text("description");
    for (ConfigObject& claim : object.objects("claims")) verdicts.push_back(judge_claim(comparison, claim));
    object.finish();
    return verdicts;
}

std::vector<Verdict> judge_cases(const Comparison& comparison) {
    std::vector<Verdict> verdicts;
    for (const ComparedCase& one : comparison.cases) {
        if (!one.tolerance) continue;
        Verdict verdict;
        verdict.claim = one.scenario + ", " + one.name + ": error <= " + rounded(100 * *one.tolerance) + " %";
        verdict.value = 100 * one.error;
        verdict.met = std::abs(one.error) <= *one.tolerance;
        verdict.known_gap = one.known_gap;
        verdict.reason = one.reason;
        verdicts.push_back(std::move(verdict));
    }
    return verdicts;
}

}  // namespace overlap
