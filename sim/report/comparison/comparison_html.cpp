#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/report/comparison/comparison.hpp"
#include "sim/report/html.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"
#include "sim/report/ticks.hpp"

namespace overlap {
namespace {

std::string us(Seconds time) {
    return significant(to_microseconds(time));
}

/// Measured against predicted, both logarithmic, with the diagonal and ±10 %.
std::string scatter(const Comparison& comparison) {
    constexpr double left = 64, top = 12, side = 440, legend = 240, legend_line = 18;
    double low = 1e300, high = 0;
    for (const ComparedCase& one : comparison.cases)
        for (const double time : {to_microseconds(one.measured), to_microseconds(one.predicted)}) {
            low = std::min(low, time);
            high = std::max(high, time);
        }
    low *= 0.8;
    high *= 1.25;
    const auto place = [&](double time) { return side * std::log(time / low) / std::log(high / low); };
    const auto x = [&](double time) { return left + place(time); };
    const auto y = [&](double time) { return top + side - place(time); };

    std::set<std::string> schedules;
    for (const ComparedCase& one : comparison.cases) schedules.insert(one.labels.at("schedule"));
    const double legend_height = top + legend_line * static_cast<double>(schedules.size() + 2);
    Drawing drawing(left + side + legend, std::max(top + side + 48, legend_height));
    const double band = place(low * 1.1);
    drawing.polygon({{left, top + side},
                     {left, top + side - band},
                     {left + side - band, top},
                     {left + side, top},
                     {left + side, top + band},
                     {left + band, top + side}},
                    "fill:#eaeef2");
    drawing.line(left, top + side, left + side, top, "stroke:#59636e");
    // Labels below the axis are up to 50 pixels wide.
    for (const double tick : log_ticks(low, high, 56 / side)) {
        drawing.line(x(tick), top + side, x(tick), top + side + 4, "stroke:#59636e");
        drawing.text(x(tick), top + side + 18, significant(tick), "middle");
        drawing.line(left - 4, y(tick), left, y(tick), "stroke:#59636e");
        drawing.text(left - 8, y(tick) + 4, significant(tick), "end");
    }
    drawing.rectangle(left, top, side, side, "fill:none;stroke:#59636e");
    drawing.text(left + side / 2, top + side + 40, "measured, us", "middle");
    drawing.text(left + 8, top + 18, "predicted, us", "start");
    std::size_t number = 0;
    for (const std::string& schedule : schedules) {
        const Look look = look_of(number);
        for (const ComparedCase& one : comparison.cases)
            if (one.labels.at("schedule") == schedule)
                drawing.mark(x(to_microseconds(one.measured)), y(to_microseconds(one.predicted)), 3.5, look,
                             one.scenario + "\n" + one.name + "\nmeasured " + us(one.measured) +
                                 " us, predicted " + us(one.predicted) + " us, " +
                                 signed_percent_text(one.error));
        const double row = top + 14 + legend_line * static_cast<double>(number);
        drawing.mark(left + side + 20, row - 4, 4, look);
        drawing.text(left + side + 30, row, schedule);
        ++number;
    }
    drawing.text(left + side + 20, top + legend_line * static_cast<double>(number) + 20,
                 "grey band: within 10 %");
    return drawing.svg();
}

/// Cases by signed error, in bins of 2 %; the outermost bins are open.
std::string histogram(const Comparison& comparison) {
    constexpr int bins = 31;
    constexpr double step = 0.02, left = 40, top = 10, width = 700, height = 180;
    std::vector<int> counts(bins);
    for (const ComparedCase& one : comparison.cases) {
        const int bin = static_cast<int>(std::lround(one.error / step)) + bins / 2;
        ++counts[static_cast<std::size_t>(std::clamp(bin, 0, bins - 1))];
    }
    const int most = std::max(1, *std::ranges::max_element(counts));
    Drawing drawing(left + width + 20, top + height + 44);
    for (int bin = 0; bin < bins; ++bin) {
        const int count = counts[static_cast<std::size_t>(bin)];
        const double bar = height * count / most, x = left + width * bin / bins;
        const int centre = (bin - bins / 2) * 2;
        drawing.rectangle(x + 1, top + height - bar, width / bins - 2, bar, "fill:" + colour(0),
                          std::to_string(count) + " cases at " + std::to_string(centre) + " %");
        if (centre % 10 == 0)
            drawing.text(x + width / bins / 2, top + height + 16,
                         (centre > 0 ? "+" : "") + std::to_string(centre), "middle");
    }
    drawing.line(left, top + height, left + width, top + height, "stroke:#59636e");
    drawing.text(left - 6, top + 10, std::to_string(most), "end");
    drawing.text(left + width / 2, top + height + 36, "predicted / measured - 1, % (ends: all beyond)",
                 "middle");
    return drawing.svg();
}

/// Bars are filled where measured; predicted ones are pale with a frame.
std::string bar_style(std::size_t kind, bool predicted) {
    return "fill:" + colour(kind) + ";stroke-width:.5;" +
           (predicted ? "fill-opacity:.35;stroke:" + colour(kind) : "stroke:#fff");
}

/// Tracks of one GPU of one of the timelines, on a common time axis. Adds the kinds of their spans to `kinds`.
void draw_gpu(Drawing& drawing, const Timeline& timeline, int gpu, bool predicted, double scale, double left,
              double& y, std::set<std::size_t>& kinds) {
    const std::string name = predicted ? "predicted" : "GPU " + std::to_string(gpu) + " measured";
    std::set<std::string> tracks;
    for (const Span& span : timeline.spans())
        if (span.gpu == gpu) tracks.insert(span.track);
    for (const std::string& track : tracks) {
        drawing.text(left - 8, y + 11, name + " " + track, "end");
        for (const Span& span : timeline.spans()) {
            if (span.gpu != gpu || span.track != track) continue;
            const double start = span.start.si() * scale;
            kinds.insert(static_cast<std::size_t>(span.kind));
            drawing.rectangle(left + start, y, std::max(0.5, (span.end - span.start).si() * scale), 14,
                              bar_style(static_cast<std::size_t>(span.kind), predicted),
                              span.name + ": " + us(span.start) + " to " + us(span.end) + " us");
        }
        y += 17;
    }
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

std::string error_table(const Comparison& comparison) {
    std::vector<std::vector<std::string>> rows{row_of("all", "", comparison.all)};
    for (const GroupErrors& group : comparison.groups)
        rows.push_back(row_of(group.key, group.value, group.errors));
    for (const auto& [kind, errors] : comparison.by_task_kind) rows.push_back(row_of("task", kind, errors));
    return html_table({"by", "value", "cases", "mean |error|", "median", "p90", "bias"}, rows);
}

std::string case_table(const Comparison& comparison) {
    std::vector<std::vector<std::string>> rows;
    for (const ComparedCase& one : comparison.cases)
        rows.push_back({one.scenario, one.name, us(one.measured), percent_text(one.measured_spread),
                        us(one.predicted), us(one.predicted_p10) + " - " + us(one.predicted_p90),
                        signed_percent_text(one.error)});
    return "<div class=\"scroll\">" +
           html_table(
               {"scenario", "schedule", "measured us", "between runs", "predicted us", "p10 - p90", "error"},
               rows) +
           "</div>";
}

/// Each kind of price, how it came about, and in how many cases.
std::string prices_section(const Comparison& comparison) {
    const std::map<std::string, std::size_t> cases = prices_of(comparison);
    if (cases.empty()) return "";
    std::vector<std::string> items;
    for (const auto& [price, count] : cases) items.push_back(price + ": " + std::to_string(count) + " cases");
    return html_section(
        "How sure",
        "How each kind of price of the predictions came about; ± is its own error on what no fit saw.",
        html_list(items));
}

std::string ranking_section(const Comparison& comparison) {
    const RankingSummary& summary = comparison.ranking;
    if (summary.scenarios == 0) return "";
    std::vector<std::vector<std::string>> rows;
    for (const RankedScenario& scenario : comparison.scenarios)
        rows.push_back({scenario.name, std::to_string(scenario.cases), scenario.measured_best,
                        scenario.predicted_best, percent_text(scenario.regret),
                        scenario.rank_correlation ? fixed(*scenario.rank_correlation, 2) : ""});
    return "<h2>Choice of a schedule</h2>\n<p>The predicted best is within 2 % of the measured best in " +
           percent_text(summary.best_within_2pct) + " of " + std::to_string(summary.scenarios) +
           " scenarios; mean regret " + percent_text(summary.mean_regret, 2) + ", mean rank correlation " +
           fixed(summary.rank_correlation, 2) + ".</p>\n<div class=\"scroll\">" +
           html_table({"scenario", "cases", "measured best", "predicted best", "regret", "rank correlation"},
                      rows) +
           "</div>";
}

std::string verdict_section(const Comparison& comparison) {
    if (comparison.verdicts.empty()) return "";
    std::vector<std::vector<std::string>> rows;
    for (const Verdict& verdict : comparison.verdicts)
        rows.push_back({verdict.claim, (verdict.at_least ? ">= " : "<= ") + plain(verdict.asked),
                        verdict.reached ? plain(*verdict.reached) : "", fixed(verdict.value, 2),
                        standing_names[static_cast<std::size_t>(verdict.standing())], verdict.reason});
    return html_section("Tolerances", "In %. Reached: what came out when the claim was written.",
                        html_table({"claim", "asked", "reached", "now", "", "reason"}, rows));
}

}  // namespace

std::string gantt(const ComparedCase& one) {
    constexpr double left = 190, width = 840;
    const Seconds end = std::max(one.measured_timeline.end(), one.predicted_timeline.end());
    const double scale = width / std::max(end.si(), 1e-12);
    const int gpus = std::min(2, std::max(one.measured_timeline.gpus(), one.predicted_timeline.gpus()));
    std::set<std::size_t> kinds;  // for the legend
    double y = 4;
    Drawing drawing(left + width + 10, y);
    for (int gpu = 0; gpu < gpus; ++gpu) {
        draw_gpu(drawing, one.measured_timeline, gpu, false, scale, left, y, kinds);
        draw_gpu(drawing, one.predicted_timeline, gpu, true, scale, left, y, kinds);
        y += 12;
    }
    drawing.set_height(y + 46);
    drawing.text(left, y + 8, "0");
    drawing.text(left + width, y + 8, us(end) + " us", "end");
    double x = left;
    for (const std::size_t kind : kinds) {
        drawing.rectangle(x, y + 18, 10, 10, "fill:" + colour(kind));
        drawing.text(x + 14, y + 28, task_kind_names[kind]);
        x += 115;
    }
    std::string html = "<details><summary>" + html_escaped(one.name + ", " + one.scenario) + ": " +
                       signed_percent_text(one.error) + "</summary>\n" + drawing.svg();
    if (one.tasks && one.tasks->first)
        html += "<p>First off by more than 2 % of the makespan: " + html_escaped(one.tasks->first->task) +
                " on GPU " + std::to_string(one.tasks->first->gpu) + ", measured end " +
                us(one.tasks->first->measured_end) + " us, predicted " + us(one.tasks->first->predicted_end) +
                " us.</p>\n";
    return html + "</details>\n";
}

std::string comparison_sections(const Comparison& comparison) {
    std::string body = "<p>" + std::to_string(comparison.cases.size()) + " measured cases; mean |error| <b>" +
                       percent_text(comparison.all.mean) + "</b>, p90 " + percent_text(comparison.all.p90) +
                       ", bias " + signed_percent_text(comparison.all.bias) + ".</p>\n";
    if (!comparison.cases.empty())
        body += "<h2>Predicted against measured</h2>\n" + scatter(comparison) + "<h2>Errors</h2>\n" +
                histogram(comparison) + error_table(comparison);
    body += prices_section(comparison) + ranking_section(comparison) + verdict_section(comparison);
    std::string gantts;
    for (const ComparedCase& one : comparison.cases)
        if (one.tasks) gantts += gantt(one);
    if (!gantts.empty())
        body += html_section(
            "Side by side",
            "The first two GPUs: measured bars are full, predicted ones pale; point at a bar for its times.",
            gantts);
    body += "<h2>Cases</h2>\n" + case_table(comparison);
    if (comparison.not_predicted.empty()) return body;
    return body + "<h2>Not predicted</h2>\n" + html_list(comparison.not_predicted);
}

std::string to_html(const Comparison& comparison) {
    return html_page("Predicted against measured",
                     html_list(texts_of(comparison.remarks)) + comparison_sections(comparison));
}

}  // namespace overlap
