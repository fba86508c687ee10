#include "sim/commands/trace_advice.hpp"

#include <algorithm>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

std::string us_text(double us) {
    return right(fixed(us, 1), 12);
}
std::string share_of(double us, double whole) {
    return fixed(100 * us / std::max(1e-9, whole), 1) + " %";
}
std::string share_text(double us, double whole) {
    return right(share_of(us, whole), 10);
}

Json gain_json(const Gain& gain) {
    return {{"schedule", gain.what},   {"own_kernel", gain.own_kernel},
            {"preset", gain.preset},   {"makespan_us", gain.makespan_us},
            {"gain_us", gain.gain_us}, {"in_graphs_us", or_null(gain.in_graphs_us)}};
}

Json other_json(const OtherRun& run) {
    return {{"change", run.what},
            {"gain_us", or_null(run.gain_us)},
            {"by_memory_us", or_null(run.by_memory_us)},
            {"kept_share", run.gain_us ? Json(run.kept_share) : Json()},
            {"note", or_null(run.note)}};
}

/// The rows to print: of machines that the program chose, the best few.
std::vector<OtherRun> shown_others(const std::vector<OtherRun>& others) {
    constexpr std::size_t most_machines = 3;
    std::vector<OtherRun> shown;
    std::size_t machines = 0;
    for (const OtherRun& run : others)
        if (run.was_named || ++machines <= most_machines) shown.push_back(run);
    return shown;
}

constexpr const char *shares_title = "kernels' time  ", *kept_title = "kept", *by_memory_title = "by memory",
                     *engines_title = "whole collectives by copy engines",
                     *limit_title = "no schedule gains more than what is exposed";

}  // namespace

double TraceAdvice::exposed_us() const {
    if (spread) return spread->exposed_us;
    double sum = 0;
    for (const TimeShare& share : where)
        if (share.what.starts_with("exposed")) sum += share.us;
    return sum;
}

const Gain* TraceAdvice::copy_engines() const {
    const auto found = std::ranges::find_if(gains, [](const Gain& gain) {
        return gain.what.starts_with("serial/") && gain.what.find("/dma/") != std::string::npos;
    });
    return found == gains.end() ? nullptr : &*found;
}

Json to_json(const TraceAdvice& advice) {
    const ListShares& shares = advice.shares;
    Json json{
        {"recorded", advice.recorded},
        {"topology", or_null(advice.topology)},
        {"iteration_us", advice.iteration_us},
        {"where_us", Json::object()},
        {"kernels_us",
         {{"recorded", shares.recorded_us}, {"priced", shares.priced_us}, {"unknown", shares.unknown_us}}},
        {"spread", advice.spread ? Json(advice.spread->how) : Json()},
        {"spread_us", advice.spread ? Json(advice.spread->us) : Json()},
        {"pairs", Json::array()},
        {"schedules", mapped(advice.gains, gain_json)},
        {"why_no_schedules", or_null(advice.why_no_gains)},
        {"exposed_us", advice.exposed_us()},
        {"in_graphs_us", advice.in_graphs ? Json(advice.in_graphs->makespan_us) : Json()},
        {"others", mapped(advice.others, other_json)},
        {"notes", advice.notes}};
    for (const TimeShare& share : advice.where) json["where_us"][share.what] = share.us;
    for (const TracePair& pair : advice.pairs)
        json["pairs"].push_back(
            {{"name", pair.name}, {"count", pair.gemms.size()}, {"recorded_us", pair.recorded_us}});
    return json;
}

namespace {

std::string others_text(const TraceAdvice& advice, std::size_t width) {
    constexpr std::size_t column = 14;
    std::string text;
    const auto row = [&](const std::string& what, double us, const std::string& more) {
        text += left("  " + what, width) + us_text(us) + share_text(us, advice.base_us()) + more + "\n";
    };
    const auto share = [](double part, double whole) { return right(share_of(part, whole), column); };
    if (advice.in_graphs) row(advice.in_graphs->what, advice.in_graphs->gain_us, "");
    if (const Gain* engines = advice.copy_engines()) row(engines_title, engines->gain_us, "");
    for (const OtherRun& run : shown_others(advice.others))
        if (run.gain_us)
            row(run.what, *run.gain_us,
                share(run.kept_share, 1) +
                    (run.by_memory_us ? share(*run.by_memory_us, advice.base_us()) : std::string()));
        else
            text += clipped("  " + run.what + ": not known, " + run.note) + "\n";
    if (text.empty()) return text;
    return left("what else would", width) + right("gain us", 12) + right(kept_title, 10 + column) +
           right(by_memory_title, column) + "\n" + text;
}

}  // namespace

std::string to_text(const TraceAdvice& advice) {
    constexpr std::size_t width = 50, most_schedules = 6, most_presets = 4, most_refused = 3;
    std::string text = advice.recorded + "\n";
    for (const std::string& note : advice.notes) text += clipped(note) + "\n";
    text += "iteration   " + fixed(advice.iteration_us, 1) + " us" +
            (advice.topology.empty() ? "" : ", machine " + advice.topology) + "\n\n" +
            left("where it goes", width) + right("us", 12) + "\n";
    for (const TimeShare& share : advice.where)
        text += left("  " + share.what, width) + us_text(share.us) +
                share_text(share.us, advice.iteration_us) + "\n";
    const ListShares& shares = advice.shares;
    text += std::string(shares_title) + "recorded " + share_of(shares.recorded_us, shares.all_us()) +
            ", priced " + share_of(shares.priced_us, shares.all_us()) + ", unknown " +
            share_of(shares.unknown_us, shares.all_us()) + "\n\n";
    if (advice.spread && advice.spread->us > 0)
        text += left("on " + advice.spread->how, width) + us_text(advice.spread->us) + "\n";
    if (!advice.pairs.empty())
        text += left("pairs", width) + right("times", 12) + right("us each", 12) + "\n";
    for (const TracePair& pair : advice.pairs)
        text += left("  " + pair.name, width) + right(std::to_string(pair.gemms.size()), 12) +
                us_text(pair.recorded_us) + "\n";
    for (std::size_t i = 0; i < std::min(most_refused, advice.no_pairs.size()); ++i)
        text += clipped("  no pair: " + advice.no_pairs[i]) + "\n";
    if (!advice.gains.empty())
        text += left("schedules of these pairs in this run", width) + right("gain us", 12) +
                right("with captured graphs", 32) + "\n";
    std::size_t schedules = 0, presets = 0;
    for (const Gain& gain : advice.gains) {
        if (gain.preset ? ++presets > most_presets : ++schedules > most_schedules) continue;
        text += left("  " + gain.what + (gain.preset ? ", as its library" : "") +
                         (gain.own_kernel ? "   own kernel" : ""),
                     width) +
                us_text(gain.gain_us) + share_text(gain.gain_us, advice.base_us());
        if (const double us = advice.base_us() - gain.in_graphs_us.value_or(0); gain.in_graphs_us)
            text += us_text(us) + share_text(us, advice.base_us());
        text += "\n";
    }
    if (!advice.why_no_gains.empty()) text += "schedules   none to compare: " + advice.why_no_gains + "\n";
    const double exposed = advice.exposed_us();
    text += left(limit_title, width) + us_text(exposed) + share_text(exposed, advice.base_us()) + "\n";
    return text + others_text(advice, width);
}

namespace {

void add_others(Page& page, const TraceAdvice& advice) {
    Page::Cells rows;
    const auto row = [&](const std::string& what, std::optional<double> us, Page::Cells::value_type more) {
        rows.push_back({what, us ? fixed(*us, 1) : "", us ? share_of(*us, advice.base_us()) : ""});
        append(rows.back(), more);
    };
    if (advice.in_graphs) row(advice.in_graphs->what, advice.in_graphs->gain_us, {"", "", ""});
    if (const Gain* engines = advice.copy_engines()) row(engines_title, engines->gain_us, {"", "", ""});
    for (const OtherRun& run : advice.others)
        row(run.what, run.gain_us,
            {run.gain_us ? share_of(run.kept_share, 1) : "",
             run.by_memory_us ? share_of(*run.by_memory_us, advice.base_us()) : "",
             run.gain_us ? run.note : "not known: " + run.note});
    if (rows.empty()) return;
    page.heading(
        "What else would gain",
        "GEMMs and collectives take their recorded time, times new price over old price; what a collective took "
        "beyond its price is waiting, and stays. kept: the share of the kernels' time that stays as recorded. "
        "by memory: the gain if all kernels but GEMMs and attention go by the rate of the machine's memory, too.");
    page.table({"change", "gain us", "share", kept_title, by_memory_title, ""}, rows, "others");
}

}  // namespace

Page page_of(const TraceAdvice& advice) {
    constexpr std::size_t most_spans = 4000;
    Page page("A recorded run, and what would overlap gain in it");
    const ListShares& shares = advice.shares;
    std::vector<std::pair<std::string, std::string>> facts{
        {"recorded", advice.recorded},
        {"iteration", fixed(advice.iteration_us, 1) + " us"},
        {"machine", advice.topology.empty() ? "not known: give --topology" : advice.topology},
        {"kernels' time", "recorded " + share_of(shares.recorded_us, shares.all_us()) + ", priced " +
                              share_of(shares.priced_us, shares.all_us()) + ", unknown " +
                              share_of(shares.unknown_us, shares.all_us())}};
    if (advice.spread) facts.emplace_back("on " + advice.spread->how, fixed(advice.spread->us, 1) + " us");
    page.facts(facts);
    page.list(advice.notes);
    Page::Cells where;
    for (const TimeShare& share : advice.where)
        where.push_back({share.what, fixed(share.us, 1), share_of(share.us, advice.iteration_us)});
    page.heading("Where the iteration goes", "Each moment counts for the first of these that runs.");
    page.table({"what", "us", "share"}, where, "where");
    Json spans = Json::array();
    std::int64_t begin = INT64_MAX;
    for (const RecordedSpan& span : advice.spans) begin = std::min(begin, span.start_ns);
    for (const RecordedSpan& span : advice.spans) {
        if (spans.size() == most_spans) break;
        spans.push_back({span.track, task_kind_names[static_cast<std::size_t>(span.kind)],
                         static_cast<double>(span.start_ns - begin) * 1e-3,
                         static_cast<double>(span.end_ns - begin) * 1e-3, span.name, false});
    }
    page.heading("The iteration as recorded",
                 advice.spans.size() > most_spans
                     ? "The first " + std::to_string(most_spans) + " kernels and copies."
                     : "Point at a bar for its kernel.");
    page.chart("timeline", {{"spans", spans}, {"unit", "us"}});
    if (!advice.pairs.empty()) {
        Page::Cells pairs;
        for (const TracePair& pair : advice.pairs)
            pairs.push_back({pair.name, std::to_string(pair.gemms.size()), fixed(pair.recorded_us, 1)});
        page.heading("Pairs", "A GEMM and a collective of which one needs the other.");
        page.table({"pair", "times", "us each"}, pairs, "pairs");
    }
    page.heading("What would gain",
                 "Over the same pairs one after the other, by the machine's prices for both.");
    Page::Cells gains;
    const auto row = [&](const Gain& gain) {
        const double in_graphs = advice.base_us() - gain.in_graphs_us.value_or(0);
        gains.push_back({gain.what,
                         gain.own_kernel ? "needs an own kernel"
                         : gain.preset   ? "as its library runs it"
                                         : "",
                         fixed(gain.gain_us, 1), share_of(gain.gain_us, advice.base_us()),
                         gain.in_graphs_us ? fixed(in_graphs, 1) : "",
                         gain.in_graphs_us ? share_of(in_graphs, advice.base_us()) : ""});
    };
    for (const Gain& gain : advice.gains) row(gain);
    if (!gains.empty())
        page.table({"change", "", "gain us", "share", "with graphs, us", "share"}, gains, "gains");
    if (!advice.why_no_gains.empty()) page.text("No schedules to compare: " + advice.why_no_gains + ".");
    page.text(std::string("At most: ") + limit_title + ", " + fixed(advice.exposed_us(), 1) + " us (" +
              share_of(advice.exposed_us(), advice.base_us()) + ").");
    add_others(page, advice);
    return page;
}

}  // namespace overlap
