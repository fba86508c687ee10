#include <algorithm>
#include <map>

#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"
#include "sim/run/run.hpp"
#include "sim/run/run_config.hpp"
#include "sim/transformer/study_report.hpp"

namespace overlap {
namespace {

constexpr double full_colour_gain = 0.5;  // gains from here on have the same colour

std::string milliseconds_text(Seconds time) {
    return significant(time.si() * 1e3);
}

/// The model's FLOPs over those that the GPUs could do; empty if not known.
std::string mfu_text(const std::string& before, const std::optional<double>& share) {
    return share ? before + percent_text(*share) : "";
}

void add_steps(Page& page, const ModelReport& report) {
    Page::Cells rows;
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
            rows.push_back({label_of(step) + ", library kernels", "", milliseconds_text(step.whole),
                            milliseconds_text(*step.cut_by_library),
                            fixed(step.whole / *step.cut_by_library, 3), "", "", rate(step, step.whole),
                            rate(step, *step.cut_by_library), "", ""});
    }
    page.table({"tokens", report.steps.front().shape.phase == Phase::decode ? "context" : "sequence",
                "serial ms", "overlap ms", "speed-up", "exposed, serial ms", "exposed, overlap ms",
                "tokens/s, serial", "tokens/s, overlap", "MFU, serial", "MFU, overlap"},
               rows, "steps");
}

/// Two bars for each number of tokens, in per cent of the step without overlap.
void add_step_bars(Page& page, const ModelReport& report) {
    Json bars = Json::array();
    for (const StepStudy& step : report.steps) {
        const auto bar = [&](const std::string& name, Seconds time, Seconds exposed, bool cut,
                             const std::string& text) {
            const double covered = 100 * ((time - exposed) / step.whole);
            bars.push_back({label_of(step) + name,
                            {cut ? 0 : covered, cut ? covered : 0, 100 * (exposed / step.whole)},
                            milliseconds_text(time) + " ms" + text});
        };
        bar(", serial", step.whole, step.exposed_whole, false, mfu_text(", MFU ", step.mfu_whole));
        bar(", overlap", step.cut, step.exposed_cut, true,
            ", " + fixed(step.whole / step.cut, 3) + " x" + mfu_text(", MFU ", step.mfu_cut));
    }
    page.chart("bars", {{"parts", {"without overlap", "with overlap", "of it exposed communication"}},
                        {"grey", {"without overlap"}},
                        {"bars", bars},
                        {"label", "share of the step without overlap [%]"}});
}

/// An operator at another number of tokens; null if that step has none of this name.
const OperatorStudy* same_operator(const StepStudy& step, const std::string& list, const std::string& name) {
    for (const ListStudy& one : step.lists) {
        if (one.name != list) continue;
        for (const OperatorStudy& row : one.operators)
            if (row.name == name) return &row;
    }
    return nullptr;
}

Json operator_cell(const OperatorStudy* row) {
    if (row == nullptr) return "";
    const std::string times = us_text(row->whole) + " us serial, " + us_text(row->cut) + " us with overlap";
    if (!row->best)
        return {{"text", us_text(row->cut) + " us"},
                {"small", row->is_pair ? "no schedule fits" : ""},
                {"tip", times}};
    return {{"text", signed_percent_text(row->gain)},
            {"small", row->label()},
            {"tip", times + (row->decided_by.empty() ? "" : "; decided by " + row->decided_by)},
            {"share", row->gain / full_colour_gain}};
}

/// Operators by numbers of tokens.
void add_operators(Page& page, const ModelReport& report) {
    std::vector<std::string> head{"list", "operator"};
    for (const StepStudy& step : report.steps) head.push_back(label_of(step));
    Json rows = Json::array();
    for (const ListStudy& list : report.steps.front().lists)
        for (const OperatorStudy& row : list.operators) {
            Json cells{list.name + (list.count > 1 ? ", " + std::to_string(list.count) + " times" : ""),
                       row.name};
            for (const StepStudy& step : report.steps)
                cells.push_back(operator_cell(same_operator(step, list.name, row.name)));
            rows.push_back(std::move(cells));
        }
    page.table(head, rows, "operators");
}

/// Pairs whose best schedule changes with the number of tokens. Candidates that differ only in the number of chunks
/// or in the direction of transfers count as one schedule.
void add_crossovers(Page& page, const ModelReport& report) {
    std::map<std::int64_t, const StepStudy*> steps;
    for (const StepStudy& step : report.steps) steps[step.shape.tokens] = &step;
    Page::Cells rows;
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
    page.heading(
        "Crossovers",
        "From which number of tokens another schedule is best, between the numbers that were asked for.");
    if (rows.empty())
        return page.text(steps.size() < 2 ? "One number of tokens: no crossover to look for."
                                          : "No best schedule changes between these numbers of tokens.");
    page.table({"list", "operator", "best below", "best above", "still at tokens", "no longer at tokens"},
               rows);
}

}  // namespace

Page page_of(const ModelReport& report) {
    Page page(report.model.name + " on " + report.topology);
    page.text(description_of(report) + " (" + report.topology + ").");
    page.heading(
        "Step",
        "Time of a step, without and with overlap. MFU: FLOPs of the model over time, GPUs and the data "
        "sheet's peak.");
    add_step_bars(page, report);
    add_steps(page, report);
    page.heading(
        "Operators by tokens",
        "Of a pair: its best schedule (schedule/chunks/agent/transfer), and what the pair alone gains over "
        "the fastest serial, coloured from 0 to " +
            percent_text(full_colour_gain, 0) +
            ". Other operators: their time. Point at a cell for times and what decides.");
    add_operators(page, report);
    if (report.has_own_kernels()) page.text(own_kernel_meaning);
    if (!report.is_list()) add_crossovers(page, report);
    page.heading("How sure");
    if (const std::string sure = to_text(report.confidence); !sure.empty())
        page.text("Prices of the " + std::string(report.is_list() ? "list" : "most frequent layer") + ": " +
                  sure + ". An error of measured makespans is of operator pairs, not of whole steps.");
    page.list(texts_of(report.remarks()));
    return page;
}

Confidence confidence_of(const StepStudy& step, const StudyOptions& options, Resolver& resolver) {
    const auto most = std::ranges::max_element(step.lists, {}, &ListStudy::count);
    RunConfig config = options.run;
    config.origin = "sim model";
    config.schedule = "concurrent";
    config.seeds = 1;
    config.workload = to_json(most->workload);
    return predict(resolver.resolve(config), true).confidence;
}

}  // namespace overlap
