#include <algorithm>
#include <map>

#include "sim/report/html.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"
#include "sim/run/effects.hpp"
#include "sim/run/experiment.hpp"
#include "sim/run/makespan_error.hpp"
#include "sim/run/run_config.hpp"
#include "sim/transformer/study_report.hpp"

namespace overlap {
namespace {

constexpr std::string_view study_style = R"(
body{max-width:1240px}table.data th{white-space:normal;vertical-align:bottom}
table.grid td{text-align:right;min-width:9rem;vertical-align:top}table.grid td small{color:#3d444d;display:block}
table.grid th{cursor:default}table.grid th[scope=row]{position:static;text-align:left;font-weight:400}
table.grid tr.list th{font-weight:600;background:#eaeef2}table.grid td.whole{color:#59636e}
.scale{display:inline-block;width:10rem;height:.8rem;margin:0 .4rem;vertical-align:middle;
background:linear-gradient(90deg,rgba(0,158,115,.08),rgba(0,158,115,.7))}
)";
constexpr double full_colour_gain = 0.5;  // gains from here on have the same colour
const std::string serial_colour = "#a7b0ba", overlap_colour = "#0072b2", exposed_colour = "#e69f00";

std::string milliseconds_text(Seconds time) {
    return significant(time.si() * 1e3);
}

/// The model's FLOPs over those that the GPUs could do; empty if not known.
std::string mfu_text(const std::string& before, const std::optional<double>& share) {
    return share ? before + percent_text(*share) : "";
}

std::string steps_table(const ModelReport& report) {
    std::vector<std::vector<std::string>> rows;
    const auto rate = [&](const StepStudy& step, Seconds time) {
        return report.is_list() ? "" : significant(step.tokens_per_second(time));
    };
    for (const StepStudy& step : report.steps) {
        rows.push_back({report.is_list() ? "" : std::to_string(step.shape.tokens),
                        report.is_list() ? "" : std::to_string(step.shape.sequence),
                        milliseconds_text(step.whole), milliseconds_text(step.cut),
                        fixed(step.whole / step.cut, 3), milliseconds_text(step.exposed_whole),
                        milliseconds_text(step.exposed_cut), rate(step, step.whole), rate(step, step.cut),
                        mfu_text("", step.mfu_whole), mfu_text("", step.mfu_cut)});
        if (step.cut_by_library)
            rows.push_back({rows.back()[0] + " library kernels", rows.back()[1],
                            milliseconds_text(step.whole), milliseconds_text(*step.cut_by_library),
                            fixed(step.whole / *step.cut_by_library, 3), "", "", rate(step, step.whole),
                            rate(step, *step.cut_by_library), "", ""});
    }
    return "<div class=\"scroll\">" +
           html_table({"tokens", report.steps.front().shape.phase == Phase::decode ? "context" : "sequence",
                       "serial ms", "overlap ms", "speed-up", "exposed, serial ms", "exposed, overlap ms",
                       "tokens/s, serial", "tokens/s, overlap", "MFU, serial", "MFU, overlap"},
                      rows) +
           "</div>\n";
}

/// Two bars for each number of tokens, in shares of the step without overlap.
std::string step_bars(const ModelReport& report) {
    constexpr double left = 150, width = 560, line = 22, top = 30, beside = 330;
    const double height = top + (2 * line + 14) * static_cast<double>(report.steps.size()) + 46;
    double most = 1;
    for (const StepStudy& step : report.steps) most = std::max(most, step.cut / step.whole);
    Drawing drawing(left + width + beside, height);
    double x = left;
    for (const auto& [colour, name] :
         {std::pair(serial_colour, "without overlap"), std::pair(overlap_colour, "with overlap"),
          std::pair(exposed_colour, "of it exposed communication")}) {
        drawing.rectangle(x, 4, 12, 12, "fill:" + colour);
        drawing.text(x + 18, 14, name);
        x += 150;
    }
    const double bottom = height - 40;
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
        const double at = left + width * share / most;
        drawing.line(at, top - 4, at, bottom, "stroke:#d0d7de");
        drawing.text(at, bottom + 16, percent_text(share, 0), "middle");
    }
    drawing.text(left + width / 2, bottom + 36, "share of the step without overlap", "middle");
    double y = top;
    for (const StepStudy& step : report.steps) {
        drawing.text(left - 8, y + line, label_of(step), "end");
        const auto bar = [&](Seconds time, Seconds exposed, const std::string& colour,
                             const std::string& text) {
            const double length = width * (time / step.whole) / most;
            const double uncovered = width * (exposed / step.whole) / most;
            drawing.rectangle(left, y, length - uncovered, line - 4, "fill:" + colour, text);
            drawing.rectangle(left + length - uncovered, y, uncovered, line - 4, "fill:" + exposed_colour,
                              "exposed communication " + milliseconds_text(exposed) + " ms");
            drawing.text(left + length + 6, y + 13, text);
            y += line;
        };
        bar(step.whole, step.exposed_whole, serial_colour,
            milliseconds_text(step.whole) + " ms" + mfu_text(", MFU ", step.mfu_whole));
        bar(step.cut, step.exposed_cut, overlap_colour,
            milliseconds_text(step.cut) + " ms, " + fixed(step.whole / step.cut, 3) + " x" +
                mfu_text(", MFU ", step.mfu_cut));
        y += 14;
    }
    return drawing.svg();
}

/// The same operator at another number of tokens; null if that step has none of this name.
const OperatorStudy* same_operator(const StepStudy& step, const std::string& list, const std::string& name) {
    for (const ListStudy& one : step.lists) {
        if (one.name != list) continue;
        for (const OperatorStudy& row : one.operators)
            if (row.name == name) return &row;
    }
    return nullptr;
}

std::string operator_cell(const OperatorStudy* row) {
    if (row == nullptr) return "<td></td>";
    const std::string times = us_text(row->whole) + " us serial, " + us_text(row->cut) + " us with overlap";
    if (!row->best)
        return "<td class=\"whole\" title=\"" + times + "\">" + us_text(row->cut) + " us" +
               (row->is_pair ? "<small>no schedule fits</small>" : "") + "</td>";
    const double share = std::clamp(row->gain / full_colour_gain, 0.0, 1.0);
    const std::string colour = "rgba(0,158,115," + fixed(row->gain > 0 ? 0.08 + 0.62 * share : 0, 2) + ")";
    return "<td style=\"background:" + colour + "\" title=\"" +
           html_escaped(times + (row->decided_by.empty() ? "" : "; decided by " + row->decided_by)) + "\">" +
           signed_percent_text(row->gain) + "<small>" + html_escaped(row->label()) + "</small></td>";
}

/// Operators by numbers of tokens.
std::string operators_table(const ModelReport& report) {
    std::string html = "<table class=\"grid\"><thead><tr><th>operator</th>";
    for (const StepStudy& step : report.steps) html += "<th scope=\"col\">" + label_of(step) + "</th>";
    html += "</tr></thead><tbody>\n";
    for (const ListStudy& list : report.steps.front().lists) {
        html +=
            "<tr class=\"list\"><th scope=\"row\" colspan=\"" + std::to_string(report.steps.size() + 1) +
            "\">" +
            html_escaped(list.name + (list.count > 1 ? ", " + std::to_string(list.count) + " times" : "")) +
            "</th></tr>\n";
        for (const OperatorStudy& row : list.operators) {
            html += "<tr><th scope=\"row\">" + html_escaped(row.name) + "</th>";
            for (const StepStudy& step : report.steps)
                html += operator_cell(same_operator(step, list.name, row.name));
            html += "</tr>\n";
        }
    }
    return html + "</tbody></table>\n";
}

/// Pairs whose best schedule changes with the number of tokens. Candidates that differ only in the number of chunks
/// or in the direction of transfers count as one schedule.
std::string crossovers(const ModelReport& report) {
    std::map<std::int64_t, const StepStudy*> steps;
    for (const StepStudy& step : report.steps) steps[step.shape.tokens] = &step;
    std::vector<std::vector<std::string>> rows;
    for (const ListStudy& list : report.steps.front().lists)
        for (const OperatorStudy& first : list.operators) {
            if (!first.is_pair) continue;
            const OperatorStudy* before = nullptr;
            std::int64_t tokens_before = 0;
            const auto name = [](const OperatorStudy& row) { return row.best ? row.label() : "none fits"; };
            const auto same = [](const OperatorStudy& a, const OperatorStudy& b) {
                return a.best && b.best ? a.best->same_choice(*b.best) : !a.best && !b.best;
            };
            for (const auto& [tokens, step] : steps) {
                const OperatorStudy* row = same_operator(*step, list.name, first.name);
                if (row == nullptr) continue;
                if (before != nullptr && !same(*before, *row))
                    rows.push_back({list.name, first.name, name(*before), name(*row),
                                    std::to_string(tokens_before), std::to_string(tokens)});
                before = row;
                tokens_before = tokens;
            }
        }
    if (rows.empty())
        return "<p>" +
               std::string(steps.size() < 2 ? "One number of tokens: no crossover to look for."
                                            : "No best schedule changes between these numbers of tokens.") +
               "</p>\n";
    return html_table(
        {"list", "operator", "best below", "best above", "still at tokens", "no longer at tokens"}, rows);
}

}  // namespace

std::string to_html(const ModelReport& report) {
    std::string body =
        "<p>" + html_escaped(description_of(report) + " (" + report.topology + ").") + "</p>\n" +
        html_section("Step",
                     "Time of a step, without and with overlap. MFU: FLOPs of the model over time, "
                     "GPUs and the data sheet's peak.",
                     step_bars(report) + steps_table(report)) +
        html_section(
            "Operators by tokens",
            "Of a pair: its best schedule (schedule/chunks/agent/transfer), and what the pair alone "
            "gains over the fastest serial. Other operators: their time. Point at a cell for times "
            "and what decides. Gain: 0 %<span class=\"scale\"></span>" +
                percent_text(full_colour_gain, 0) + " or more.",
            "<div class=\"scroll\" style=\"max-height:none\">" + operators_table(report) + "</div>\n" +
                (report.has_own_kernels() ? "<p>" + html_escaped(own_kernel_meaning) + "</p>\n" : "")) +
        (report.is_list() ? ""
                          : html_section("Crossovers",
                                         "From which number of tokens another schedule is best, between the "
                                         "numbers that were asked for.",
                                         crossovers(report)));
    const std::string sure = to_text(report.confidence);
    body += "<h2>How sure</h2>\n";
    if (!sure.empty())
        body += "<p>Prices of the " + std::string(report.is_list() ? "list" : "most frequent layer") + ": " +
                html_escaped(sure) +
                ". An error of measured makespans is of operator pairs, not of whole steps.</p>\n";
    return html_page(report.model.name + " on " + report.topology, body + html_list(texts_of(report.remarks())),
                     study_style);
}

Confidence confidence_of(const StepStudy& step, const StudyOptions& options, Resolver& resolver) {
    const auto most = std::ranges::max_element(step.lists, {}, &ListStudy::count);
    RunConfig config = options.run;
    config.origin = "sim model";
    config.schedule = "concurrent";
    config.seeds = 1;
    config.workload = to_json(most->workload);
    const Scenario scenario = resolver.resolve(config);
    const TaskGraph graph = scenario.graph();
    const Experiment experiment(scenario, graph);
    return overlap::confidence_of(scenario, graph, experiment, {experiment.makespan(Effects()), 0}, true);
}

}  // namespace overlap
