#include <array>

#include "sim/core/output_keys.hpp"
#include "sim/report/text_format.hpp"
#include "sim/search/search.hpp"

namespace overlap {
namespace {

/// The time that a change saved, if above 0: "-38.1 us".
std::string saved_text(Seconds gain, const TimeScale& scale) {
    return (gain >= Seconds() ? "-" : "+") + scale.format(gain >= Seconds() ? gain : -1 * gain) + " " +
           scale.unit();
}

// clang-format off
std::span<const OutputKey<Reason>> reason_keys() {
    static const std::vector<OutputKey<Reason>> keys{
        {"dimension", text_schema("What of the schedule changed; start: from the best listed schedule to the one that the search's way began with.", 1), [](const Reason& r) { return r.dimension; }},
        {"change", text_schema("The change of it that saved most.", 1), [](const Reason& r) { return r.change; }},
        {"saved_us", any_number("By all changes of it; below 0 if they cost time."), [](const Reason& r) { return to_microseconds(r.gain); }}};
    return keys;
}

std::span<const OutputKey<SearchResult>> search_keys() {
    using R = SearchResult;
    const auto found = [](const R& r) { return r.found; };
    const auto percent = [](double share) { return 100 * share; };
    static const std::array<std::string, 2> ends{"converged", "budget"};
    static const std::vector<OutputKey<R>> keys{
        {"schema", {{"description", "Version of this format."}, {"const", 1}}, [](const R&) { return 1; }},
        {"config", {{"description", "Machine, pair and host (run.schema.json)."}, {"type", "object"}}, [](const R& r) { return r.plan.config; }},
        {"listed", text_schema("The best listed schedule.", 1), [](const R& r) { return r.listed; }},
        {"listed_us", number_from(0, "Its makespan."), [](const R& r) { return to_microseconds(r.listed_makespan); }},
        {"found", flag_schema("Whether a faster schedule was found."), [](const R& r) { return r.found; }},
        {"makespan_us", number_from(0, "Of the schedule that was found; else of the listed one."), [](const R& r) { return to_microseconds(r.makespan); }},
        {"gain_pct", any_number("By how much the listed schedule takes longer than the one found."), [=](const R& r) { return percent(r.gain()); }},
        OutputKey<R>{"gain_error_pct", number_from(0, "Error of the gain to expect: mean distance under draws of the machine's constants within their errors."), [=](const R& r) { return percent(r.draws.error); }}.only_if(found),
        OutputKey<R>{"robust_gain_pct", any_number("Nine of ten draws gain at least this."), [=](const R& r) { return percent(r.draws.p10); }}.only_if(found),
        OutputKey<R>{"draws_ahead_pct", number_from(0, "Draws in which the schedule found is faster."), [=](const R& r) { return percent(r.draws.ahead); }}.only_if(found),
        OutputKey<R>{"draws", whole_from(1, "Number of draws."), [](const R& r) { return r.draws.draws; }}.only_if(found),
        {"robust", flag_schema("Whether nine of ten draws gain; else the gain is not claimed."), [](const R& r) { return r.is_robust(); }},
        {"ideal_us", number_from(0, "As of a run: no overlap can be shorter."), [](const R& r) { return to_microseconds(r.ideal); }},
        {"closed_pct", any_number("Share of the time between the listed schedule and ideal that is saved."), [=](const R& r) { return percent(r.closed()); }},
        {"reasons", list_of("What saved the time, the most first; they add up.", reason_keys()), [](const R& r) { return all_written(std::span(r.reasons), reason_keys()); }},
        {"steps", list_schema("GEMMs of a rank in their order, with the copies of each.", {{"type", "string"}}), [](const R& r) { return r.steps; }},
        {"staging_MB", number_from(0, "Memory of stages and partial results on a GPU, 1e6 bytes."), [](const R& r) { return r.staging.si() * 1e-6; }},
        {"simulated", whole_from(0, "Schedules that were simulated."), [](const R& r) { return r.effort.simulated; }},
        {"pruned", whole_from(0, "Schedules left out because a lower bound of their makespan is too long."), [](const R& r) { return r.effort.pruned; }},
        {"ended", choice_of(ends, "converged: nothing better came for long; budget: the time was over, and another run may find another schedule."), [](const R& r) { return r.effort.ended; }}};
    return keys;
}
// clang-format on

}  // namespace

std::string to_text(const SearchResult& result) {
    const TimeScale scale(result.listed_makespan);
    const auto time = [&](Seconds value) { return scale.format(value) + " " + scale.unit(); };
    constexpr std::size_t name = 44;
    std::string text = clipped(result.scenario) + "\n";
    text += std::to_string(result.effort.simulated) + " schedules simulated, " +
            std::to_string(result.effort.pruned) + " more left out by a lower bound; " +
            (result.effort.ended == "budget" ? "ended by --budget" : "ended when nothing better came") +
            "\n\n";
    text += left("best listed: " + result.listed, name) + right(time(result.listed_makespan), 14) + "\n";
    if (result.found) text += left("found", name) + right(time(result.makespan), 14) + "\n";
    text += left("ideal", name) + right(time(result.ideal), 14) + "\n\n";
    if (!result.found) return text + "no schedule that was tried is faster than the best listed one\n";
    text += left("gain", label_columns) + percent_text(result.gain()) + " +- " +
            percent_text(result.draws.error) + " by the machine's errors; " +
            percent_text(result.closed(), 0) + " of the way to ideal\n";
    text += left("robust", label_columns) + (result.is_robust() ? "yes: " : "no, so not claimed: ") +
            "nine of ten draws of the machine gain " + percent_text(result.draws.p10) + " or more, " +
            percent_text(result.draws.ahead, 0) + " of " + std::to_string(result.draws.draws) +
            " gain at all\n";
    text += left("staging", label_columns) + fixed(result.staging.si() * 1e-6, 1) + " MB a GPU\n\n";
    for (const Reason& reason : result.reasons)
        for (const std::string& line :
             field("",
                   right(saved_text(reason.gain, scale), 12) + "  " + reason.dimension + ": " + reason.change,
                   3))
            text += line + "\n";
    text += "\n";
    for (std::size_t i = 0; i < result.steps.size(); ++i)
        text += clipped(right(std::to_string(i + 1), 3) + "  " + result.steps[i]) + "\n";
    return text;
}

Json to_json(const SearchResult& result) {
    return written(result, search_keys());
}

Json search_schema() {
    return file_of_keys(
        "Search",
        "What 'sim search --format json' prints: the fastest schedule that a search found for a pair, "
        "against the best listed one.",
        search_keys());
}

}  // namespace overlap
