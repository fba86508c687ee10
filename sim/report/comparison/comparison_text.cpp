#include <algorithm>
#include <cmath>

#include "sim/report/comparison/comparison.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

constexpr std::size_t worst_shown = 10;
/// A case with a larger |error| is flagged. The flag is a hint: claims (tolerances.cpp) decide the exit code.
constexpr double other_scenario = 0.5;
constexpr std::size_t divergences_shown = 10;

std::string line_of(const std::string& name, const ErrorSummary& errors, std::size_t columns) {
    return left(name, columns) + right(std::to_string(errors.count), 6) +
           right(percent_text(errors.mean), 10) + right(percent_text(errors.median), 10) +
           right(percent_text(errors.p90), 10) + right(signed_percent_text(errors.bias), 10) + "\n";
}

std::string line_of(const std::string& name, const ErrorSummary& errors, const NineOfTen& nine_of_ten,
                    std::size_t columns) {
    std::string line = line_of(name, errors, columns);
    if (nine_of_ten.judged > 0)
        line.insert(
            line.size() - 1,
            right(std::to_string(nine_of_ten.inside) + " of " + std::to_string(nine_of_ten.judged), 18));
    return line;
}

std::string table(const Comparison& comparison) {
    std::size_t columns = 34;  // or as the longest name of a group needs
    for (const GroupErrors& group : comparison.groups) columns = std::max(columns, group.value.size() + 3);
    std::string text = left("error = predicted / measured - 1", columns) + right("cases", 6) +
                       right("mean |e|", 10) + right("median", 10) + right("p90", 10) + right("bias", 10) +
                       right("in nine-of-ten", 18) + "\n";
    text += line_of("all", comparison.all, comparison.nine_of_ten, columns);
    std::string key;
    for (const GroupErrors& group : comparison.groups) {
        if (group.key != key) text += group.key + "\n";
        key = group.key;
        text += line_of("  " + group.value, group.errors, group.nine_of_ten, columns);
    }
    if (!comparison.by_task_kind.empty()) text += "tasks of cases with spans, how long each lasts\n";
    for (const auto& [kind, errors] : comparison.by_task_kind) text += line_of("  " + kind, errors, columns);
    return text;
}

std::string prices(const Comparison& comparison) {
    std::string text;
    for (const auto& [price, cases] : prices_of(comparison))
        for (const std::string& line : field("  ", price + ": " + std::to_string(cases) + " cases"))
            text += line + "\n";
    return text.empty() ? "" : "\nprices, how they came about, and their own errors\n" + text;
}

std::string ranking(const Comparison& comparison) {
    const RankingSummary& summary = comparison.ranking;
    if (summary.scenarios == 0) return "";
    std::size_t hits = 0;
    for (const RankedScenario& scenario : comparison.scenarios) hits += scenario.regret <= 0.02;
    return "\nchoice of a schedule   predicted best within 2 % of the measured best in " +
           std::to_string(hits) + " of " + std::to_string(summary.scenarios) + " scenarios (" +
           percent_text(summary.best_within_2pct) + ")\n                       mean regret " +
           fixed(100 * summary.mean_regret, 2) + " %, mean rank correlation " +
           fixed(summary.rank_correlation, 2) + "\n";
}

std::string worst(const Comparison& comparison) {
    std::string text = "\nfarthest off      measured us   predicted us\n";
    std::size_t shown = 0;
    for (const ComparedCase* one : by_error(comparison)) {
        if (shown++ == worst_shown) break;
        text += right(signed_percent_text(one->error), 10) + right(us_text(one->measured), 19) +
                right(us_text(one->predicted), 15) + "  " + one->scenario + ": " + one->name +
                (std::abs(one->error) > other_scenario ? " (probably not the same scenario)" : "") + "\n";
    }
    return text;
}

std::string divergences(const Comparison& comparison) {
    std::string text;
    std::size_t count = 0;
    for (const ComparedCase* one : by_error(comparison)) {
        if (!one->spans.errors || !one->spans.errors->first || count++ >= divergences_shown) continue;
        const Divergence& first = *one->spans.errors->first;
        text += "  " + one->name + ", " + one->scenario + "\n    " + first.task + " on GPU " +
                std::to_string(first.gpu) + ": measured " + us_text(first.measured_start) + " to " +
                us_text(first.measured_end) + " us, predicted " + us_text(first.predicted_start) + " to " +
                us_text(first.predicted_end) + " us\n";
    }
    return text.empty() ? "" : "\nfirst task whose end is off by more than 2 % of the makespan\n" + text;
}

std::string verdicts(const Comparison& comparison) {
    if (comparison.verdicts.empty()) return "";
    std::string text = "\n" + left("tolerances, in %", 18) + right("asked", 10) + right("reached", 10) +
                       right("now", 10) + "\n";
    for (const Verdict& verdict : comparison.verdicts)
        text += "  " + left(standing_names[static_cast<std::size_t>(verdict.standing())], 16) +
                right((verdict.at_least ? ">= " : "<= ") + plain(verdict.asked), 10) +
                right(verdict.reached ? plain(*verdict.reached) : "", 10) +
                right(fixed(verdict.value, 2), 10) + "  " + verdict.claim +
                (verdict.reason.empty() ? "" : " (" + verdict.reason + ")") + "\n";
    return text;
}

}  // namespace

std::vector<const ComparedCase*> by_error(const Comparison& comparison) {
    std::vector<const ComparedCase*> cases;
    for (const ComparedCase& one : comparison.cases) cases.push_back(&one);
    std::ranges::stable_sort(cases, std::ranges::greater(), [](auto* one) { return std::abs(one->error); });
    return cases;
}

std::map<std::string, std::size_t> prices_of(const Comparison& comparison) {
    std::map<std::string, std::size_t> cases;
    for (const ComparedCase& one : comparison.cases)
        for (const PricedPart& part : one.confidence.parts) ++cases[text_of(part)];
    return cases;
}

std::string to_text(const Comparison& comparison) {
    std::string text;
    for (const std::string& line : lines_of(comparison.remarks)) text += line + "\n";
    text += table(comparison) + ranking(comparison);
    if (comparison.runs_within_p10_p90)
        text += "drawn orders           " + percent_text(*comparison.runs_within_p10_p90) +
                " of measured runs are within the predicted p10 to p90\n";
    text += prices(comparison) + worst(comparison) + divergences(comparison) + verdicts(comparison);
    if (!comparison.not_predicted.empty()) text += "\nnot predicted\n";
    for (const std::string& why : comparison.not_predicted) text += "  " + why + "\n";
    return text;
}

}  // namespace overlap
