#include <algorithm>
#include <set>

#include "sim/core/ranges.hpp"
#include "sim/report/comparison/comparison.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

std::string us(Seconds time) {
    return significant(to_microseconds(time));
}

/// Measured against predicted, by schedule, and the errors.
void add_scatter(Page& page, const Comparison& comparison) {
    std::set<std::string> schedules;
    for (const ComparedCase& one : comparison.cases) schedules.insert(one.labels.at("schedule"));
    const std::vector<std::string> names(schedules.begin(), schedules.end());
    Json points = Json::array(), errors = Json::array();
    for (const ComparedCase& one : comparison.cases) {
        points.push_back({to_microseconds(one.measured), to_microseconds(one.predicted),
                          place_of(names, one.labels.at("schedule")), one.scenario + "\n" + one.name});
        errors.push_back(one.error);
    }
    page.heading("Predicted against measured", "Grey band: within 10 %. Point at a mark for its case.");
    page.chart("scatter", {{"names", names}, {"points", points}, {"unit", "us"}});
    page.heading("Errors");
    page.chart("histogram", {{"errors", errors}});
}

/// Adds the spans of one GPU of one of the timelines.
void add_spans(Json& spans, const Timeline& timeline, int gpu, bool predicted) {
    std::set<std::string> tracks;
    for (const Span& span : timeline.spans())
        if (span.gpu == gpu) tracks.insert(span.track);
    for (const std::string& track : tracks)
        for (const Span& span : timeline.spans())
            if (span.gpu == gpu && span.track == track)
                spans.push_back(
                    {"GPU " + std::to_string(gpu) + (predicted ? " predicted " : " measured ") + track,
                     task_kind_names[static_cast<std::size_t>(span.kind)], to_microseconds(span.start),
                     to_microseconds(span.end), span.name, predicted});
}

std::vector<std::string> row_of(const std::string& key, const std::string& value,
                                const ErrorSummary& errors) {
    return {key,
            value,
            std::to_string(errors.count),
            percent_text(errors.mean),
            percent_text(errors.median),
            percent_text(errors.p90),
            signed_percent_text(errors.bias)};
}

void add_error_table(Page& page, const Comparison& comparison) {
    Page::Cells rows{row_of("all", "", comparison.all)};
    for (const GroupErrors& group : comparison.groups)
        rows.push_back(row_of(group.key, group.value, group.errors));
    for (const auto& [kind, errors] : comparison.by_task_kind) rows.push_back(row_of("task", kind, errors));
    page.table({"by", "value", "cases", "mean |error|", "median", "p90", "bias"}, rows, "errors");
}

/// Each kind of price, how it came about, and in how many cases.
void add_prices(Page& page, const Comparison& comparison) {
    std::vector<std::string> items;
    for (const auto& [price, count] : prices_of(comparison))
        items.push_back(price + ": " + std::to_string(count) + " cases");
    if (items.empty()) return;
    page.heading(
        "How sure",
        "How each kind of price of the predictions came about; ± is its own error on what no fit saw.");
    page.list(items);
}

void add_ranking(Page& page, const Comparison& comparison) {
    const RankingSummary& summary = comparison.ranking;
    if (summary.scenarios == 0) return;
    page.heading("Choice of a schedule");
    page.text("The predicted best is within 2 % of the measured best in " +
              percent_text(summary.best_within_2pct) + " of " + std::to_string(summary.scenarios) +
              " scenarios; mean regret " + percent_text(summary.mean_regret, 2) + ", mean rank correlation " +
              fixed(summary.rank_correlation, 2) + ".");
    Page::Cells rows;
    for (const RankedScenario& scenario : comparison.scenarios)
        rows.push_back({scenario.name, std::to_string(scenario.cases), scenario.measured_best,
                        scenario.predicted_best, percent_text(scenario.regret),
                        scenario.rank_correlation ? fixed(*scenario.rank_correlation, 2) : ""});
    page.table({"scenario", "cases", "measured best", "predicted best", "regret", "rank correlation"}, rows);
}

void add_verdicts(Page& page, const Comparison& comparison) {
    if (comparison.verdicts.empty()) return;
    Page::Cells rows;
    for (const Verdict& verdict : comparison.verdicts)
        rows.push_back({verdict.claim, (verdict.at_least ? ">= " : "<= ") + plain(verdict.asked),
                        verdict.reached ? plain(*verdict.reached) : "", fixed(verdict.value, 2),
                        standing_names[static_cast<std::size_t>(verdict.standing())], verdict.reason});
    page.heading("Tolerances", "In %. Reached: what came out when the claim was written.");
    page.table({"claim", "asked", "reached", "now", "", "reason"}, rows);
}

void add_cases(Page& page, const Comparison& comparison) {
    Page::Cells rows;
    for (const ComparedCase& one : comparison.cases)
        rows.push_back({one.scenario, one.name, signed_percent_text(one.error), us(one.measured),
                        percent_text(one.runs.spread), us(one.predicted),
                        us(one.predicted_p10) + " - " + us(one.predicted_p90)});
    page.heading("Cases");
    page.table({"scenario", "schedule", "error", "measured us", "between runs", "predicted us", "p10 - p90"},
               rows, "cases");
}

}  // namespace

void add_timelines(Page& page, const ComparedCase& one) {
    const int gpus = std::min(2, std::max(one.spans.measured.gpus(), one.spans.predicted.gpus()));
    Json spans = Json::array();
    for (int gpu = 0; gpu < gpus; ++gpu) {
        add_spans(spans, one.spans.measured, gpu, false);
        add_spans(spans, one.spans.predicted, gpu, true);
    }
    Page inner;
    inner.chart("timeline", {{"spans", spans}, {"unit", "us"}});
    if (one.spans.errors && one.spans.errors->first)
        inner.text("First off by more than 2 % of the makespan: " + one.spans.errors->first->task +
                   " on GPU " + std::to_string(one.spans.errors->first->gpu) + ", measured end " +
                   us(one.spans.errors->first->measured_end) + " us, predicted " +
                   us(one.spans.errors->first->predicted_end) + " us.");
    page.details(one.name + ", " + one.scenario + ": " + signed_percent_text(one.error), inner);
}

void add_comparison(Page& page, const Comparison& comparison) {
    page.text(std::to_string(comparison.cases.size()) + " measured cases; mean |error| " +
              percent_text(comparison.all.mean) + ", p90 " + percent_text(comparison.all.p90) + ", bias " +
              signed_percent_text(comparison.all.bias) + ".");
    if (!comparison.cases.empty()) {
        add_scatter(page, comparison);
        add_error_table(page, comparison);
    }
    add_prices(page, comparison);
    add_ranking(page, comparison);
    add_verdicts(page, comparison);
    Page timelines;
    for (const ComparedCase& one : comparison.cases)
        if (one.spans.errors) add_timelines(timelines, one);
    if (!timelines.blocks().empty())
        page.heading(
            "Side by side",
            "The first two GPUs: measured bars are full, predicted ones pale; point at a bar for its times.");
    page.append(timelines);
    add_cases(page, comparison);
    if (comparison.not_predicted.empty()) return;
    page.heading("Not predicted");
    page.list(comparison.not_predicted);
}

Page page_of(const Comparison& comparison) {
    Page page("Predicted against measured");
    page.list(texts_of(comparison.remarks));
    add_comparison(page, comparison);
    return page;
}

}  // namespace overlap
