#include "sim/advise/advise.hpp"
#include "sim/core/output_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/report/run/report.hpp"

namespace overlap {
namespace {

using Advice = SimulatedAdvice;

/// A candidate as an advice shows it.
struct ShownCandidate {
    const RankedCandidate& one;
    const Advice& of;
};

// clang-format off
Json object_of(const std::string& doc) {
    return {{"description", doc}, {"type", "object"}};
}

std::span<const OutputKey<ShownCandidate>> candidate_keys() {
    using C = ShownCandidate;
    static const std::vector<OutputKey<C>> keys{
        {"schedule", text_schema("Of sim list schedules.", 1), [](const C& c) { return c.one.candidate.schedule; }},
        {"params", object_of("As in a run config."), [](const C& c) { return c.one.candidate.params(); }},
        {"own_kernel", flag_schema("Whether it needs a kernel of one's own, which no vendor's GEMM library has."), [](const C& c) { return c.one.candidate.own_kernel(); }},
        {"makespan_us", number_from(0, "Simulated."), [](const C& c) { return to_microseconds(c.one.makespan); }},
        {"speedup", number_from(0, "Over the baseline."), [](const C& c) { return c.of.baseline.speedup(c.one.makespan); }},
        {"regret", number_from(0, "makespan / that of the best candidate - 1."), [](const C& c) { return c.one.makespan / c.of.ranked.front().makespan - 1; }}};
    return keys;
}

/// A ranked candidate. The value is null if there is none.
OutputKey<Advice> candidate_key(const std::string& key, const std::string& doc, std::optional<RankedCandidate> Advice::*member) {
    return {key, or_null(keys_schema(doc, candidate_keys())), [=](const Advice& advice) -> Json {
        const std::optional<RankedCandidate>& found = advice.*member;
        return found ? written(ShownCandidate{*found, advice}, candidate_keys()) : Json();
    }};
}

using AdviceKeys = std::span<const OutputKey<Advice>>;

AdviceKeys baseline_keys() {
    using A = Advice;
    static const std::vector<OutputKey<A>> keys{
        {"name", text_schema("For readers: 'serial/-/cu/push', 'serial by RCCL'.", 1), [](const A& a) { return a.baseline.serial.candidate.name(a.vendors_library); }},
        {"schedule", {{"description", "The one without overlap."}, {"const", "serial"}}, [](const A& a) { return a.baseline.serial.candidate.schedule; }},
        {"params", object_of("As in a run config."), [](const A& a) { return a.baseline.serial.candidate.params(); }},
        {"makespan_us", number_from(0, "Simulated."), [](const A& a) { return to_microseconds(a.baseline.serial.makespan); }},
        {"speedup", {{"description", "Over itself."}, {"const", 1.0}}, [](const A& a) { return a.baseline.speedup(a.baseline.serial.makespan); }},
        {"allowed", flag_schema("Whether it is a candidate, too: false where --agent leaves it out."), [](const A& a) { return a.baseline.allowed; }},
        {"with_library", flag_schema("Whether 'serial' by the vendor's library was among those compared: false where the library was not measured for this workload on this machine."),
            [](const A& a) { return a.baseline.with_library; }}};
    return keys;
}

AdviceKeys next_choice_keys() {
    using A = Advice;
    static const std::vector<OutputKey<A>> keys{
        {"candidate", keys_schema("That candidate.", candidate_keys()), [](const A& a) { return written(ShownCandidate{a.next_choice->choice, a}, candidate_keys()); }},
        {"too_close_to_call", or_null(flag_schema("Whether the margin is less than the expected error of the best candidate's makespan (its confidence); null where that is not known.")),
            [](const A& a) { return or_null(too_close_to_call(a.next_choice->margin, a.best.front().confidence)); }},
        {"margin", number_from(0, "Its makespan / that of the best candidate - 1."), [](const A& a) { return a.next_choice->margin; }},
        {"decided_by", text_schema("The loss in which both differ most.", 1), [](const A& a) { return a.next_choice->decided_by; }},
        {"difference_us", any_number("How much they differ in it."), [](const A& a) { return to_microseconds(a.next_choice->difference); }}};
    return keys;
}

AdviceKeys steady_choice_keys() {
    using A = Advice;
    static const std::vector<OutputKey<A>> keys{
        {"schedule", text_schema("Of sim list schedules.", 1), [](const A& a) { return a.in_steady_state->choice.candidate.schedule; }},
        {"params", object_of("As in a run config."), [](const A& a) { return a.in_steady_state->choice.candidate.params(); }},
        {"makespan_us", number_from(0, "Of one iteration."), [](const A& a) { return to_microseconds(a.in_steady_state->choice.makespan); }},
        {"gain", number_from(0, "Makespan of the best candidate of a cool GPU in the steady state / makespan_us - 1."), [](const A& a) { return a.in_steady_state->gain; }}};
    return keys;
}

AdviceKeys advice_keys() {
    using A = Advice;
    using Preset = std::pair<const PresetTime&, const A&>;
    static const std::vector<OutputKey<Preset>> preset_keys{
        {"name", text_schema("A preset of configs/schedules.", 1), [](const Preset& p) { return p.first.name; }},
        {"own_kernel", flag_schema("Whether it needs a kernel that no vendor's GEMM library has."), [](const Preset& p) { return p.first.own_kernel; }},
        {"makespan_us", number_from(0, "Simulated."), [](const Preset& p) { return to_microseconds(p.first.makespan); }},
        {"speedup", number_from(0, "Over the baseline."), [](const Preset& p) { return p.second.baseline.speedup(p.first.makespan); }}};
    static const std::vector<OutputKey<A>> keys{
        {"schema", {{"description", "Version of this format."}, {"const", 1}}, [](const A&) { return 1; }},
        {"topology", {{"description", "Its name."}, {"type", "string"}}, [](const A& a) { return a.topology; }},
        {"workload", object_of("As in a run config."), [](const A& a) { return a.workload; }},
        {"host", or_null(text_schema("Who enqueues, for all times here; null: any, the order of enqueueing changes nothing.", 1)), [](const A& a) { return or_null(a.host); }},
        {"gemm_library", or_null(text_schema("Whose kernels the GEMM prices describe; null if unknown.", 1)), [](const A& a) { return or_null(a.best.front().confidence.gemm_library()); }},
        {"notes", {{"description", "On what-if changes that are not what they seem."}, {"type", "array"}, {"items", {{"type", "string"}}}},
            [](const A& a) { return a.remarks.notes; }},
        group_of("baseline", "The one execution without overlap that every speed-up here is over: the fastest of 'serial', by DMA engines, by copy kernels and, where the device's library "
            "was measured, by the library.", baseline_keys()),
        {"candidates", list_schema("All of them, the fastest first.", keys_schema("Simulated.", candidate_keys())),
            [](const A& a) { return mapped(a.ranked, [&](const RankedCandidate& one) { return written(ShownCandidate{one, a}, candidate_keys()); }); }},
        {"best", list_schema("Of each choice (schedule, agent and kind of GEMMs) the fastest candidate's result in full, as of a run, the fastest first; their serial_us, speedup and "
            "overlap_efficiency are against the baseline.", {{"type", "object"}, {"required", {"config", "makespan_us", "serial_us", "speedup", "losses_us"}}}),
            [](const A& a) { return mapped(a.best, [](const RunResult& run) { return to_json(run); }); }},
        OutputKey<A>{"what_if", object_of("As in a run config; absent without --what-if."), [](const A& a) { return a.remarks.what_if; }}.only_if([](const A& a) { return !a.remarks.what_if.empty(); }),
        candidate_key("best_shard_level", "The fastest of shard_p2p and shard_direct.", &A::shard_level),
        candidate_key("best_library_kernels", "The fastest candidate without a kernel of one's own.", &A::by_library_kernels),
        {"presets", list_of("Schedules as libraries run them (sim list schedules), that serve the pair, the fastest first. Empty for lists.", preset_keys),
            [](const A& a) { return mapped(a.presets, [&](const PresetTime& one) { return written<Preset>({one, a}, preset_keys); }); }},
        group_of("next_choice", "The fastest candidate that is another choice than the best: another schedule, agent or kind of GEMMs, not another number of chunks or direction of transfers. "
            "Absent if there is none.", next_choice_keys()).only_if([](const A& a) { return a.next_choice.has_value(); }),
        group_of("steady", "The first few candidates back to back, at the clock that settles: the best of them, if it is another choice than on a cool GPU.", steady_choice_keys())
            .only_if([](const A& a) { return a.in_steady_state.has_value(); })};
    return keys;
}
// clang-format on

}  // namespace

Json to_json(const SimulatedAdvice& advice) {
    return written(advice, advice_keys());
}

Json advice_schema() {
    return file_of_keys(
        "Advice",
        "What 'sim advise --format json' prints: every candidate for a scenario, simulated, the "
        "fastest first.",
        advice_keys());
}

std::string csv_row(std::size_t rank, const RankedCandidate& one, Seconds best,
                    const AdviceBaseline& baseline, const std::string& pair, const Confidence* confidence,
                    const Remarks& remarks) {
    const auto& [candidate, makespan] = one;
    return std::to_string(rank) + "," + candidate.schedule + "," +
           (candidate.chunks > 0 ? std::to_string(candidate.chunks) : "") + "," + candidate.agent + "," +
           candidate.transfer + "," + candidate.gemm + "," + candidate.algorithm + "," +
           Json(to_microseconds(makespan)).dump() + "," + Json(makespan / best - 1).dump() + "," +
           Json(baseline.speedup(makespan)).dump() + "," + (candidate.own_kernel() ? "true" : "false") + "," +
           pair + "," + confidence_cells(confidence) + "," + remark_cells(remarks) + "\n";
}

std::string to_csv(const SimulatedAdvice& advice) {
    std::string text =
        "rank,schedule,chunks,agent,transfer,gemm,algorithm,makespan_us,regret,speedup,own_kernel,pair," +
        confidence_columns + "," + remark_columns + "\n";
    for (std::size_t i = 0; i < advice.ranked.size(); ++i) {
        const RankedCandidate& one = advice.ranked[i];
        const auto run = std::ranges::find_if(advice.choices, [&](const RankedCandidate& choice) {
            return choice.candidate.same_choice(one.candidate);
        });
        const auto place = static_cast<std::size_t>(run - advice.choices.begin());
        text +=
            csv_row(i + 1, one, advice.ranked.front().makespan, advice.baseline, "",
                    place < advice.best.size() ? &advice.best[place].confidence : nullptr, advice.remarks);
    }
    return text;
}

}  // namespace overlap
