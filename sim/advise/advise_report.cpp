#include "sim/advise/advise.hpp"
#include "sim/core/ranges.hpp"
#include "sim/report/run/report.hpp"

namespace overlap {
namespace {

Json json_of(const RankedCandidate& one, const AdviceBaseline& baseline, Json regret) {
    return {{"schedule", one.candidate.schedule},        {"params", one.candidate.params()},
            {"own_kernel", one.candidate.own_kernel()},  {"makespan_us", to_microseconds(one.makespan)},
            {"speedup", baseline.speedup(one.makespan)}, {"regret", std::move(regret)}};
}

Json json_of(const AdviceBaseline& baseline, const std::string& library) {
    return {{"name", baseline.serial.candidate.name(library)},
            {"schedule", baseline.serial.candidate.schedule},
            {"params", baseline.serial.candidate.params()},
            {"makespan_us", to_microseconds(baseline.serial.makespan)},
            {"speedup", baseline.speedup(baseline.serial.makespan)},
            {"allowed", baseline.allowed},
            {"with_library", baseline.with_library}};
}

}  // namespace

Json to_json(const SimulatedAdvice& advice) {
    const Seconds best = advice.ranked.front().makespan;
    Json json{{"schema", 1},
              {"topology", advice.topology},
              {"workload", advice.workload},
              {"gemm_library", or_null(advice.best.front().confidence.gemm_library())},
              {"notes", advice.remarks.notes},
              {"baseline", json_of(advice.baseline, advice.vendors_library)}};
    const auto candidate = [&](const RankedCandidate& one) {
        return json_of(one, advice.baseline, one.makespan / best - 1);
    };
    json["candidates"] = mapped(advice.ranked, candidate);
    json["best"] = mapped(advice.best, [](const RunResult& run) { return to_json(run); });
    if (!advice.what_if.empty()) json["what_if"] = advice.what_if;
    const auto put_candidate = [&](const char* key, const std::optional<RankedCandidate>& one) {
        json[key] = one ? candidate(*one) : Json();
    };
    put_candidate("best_shard_level", advice.shard_level);
    put_candidate("best_library_kernels", advice.by_library_kernels);
    const auto put = [&](const char* key, const std::optional<HeuristicAdvice>& one) {
        json[key] = one ? json_of(one->said, advice.baseline, or_null(one->regret)) : Json();
    };
    json["presets"] = Json::array();
    for (const PresetTime& one : advice.presets)
        json["presets"].push_back({{"name", one.name},
                                   {"own_kernel", one.own_kernel},
                                   {"makespan_us", to_microseconds(one.makespan)},
                                   {"speedup", advice.baseline.speedup(one.makespan)}});
    put("heuristic", advice.heuristic);
    put("heuristic_library", advice.heuristic_library);
    if (advice.next_choice) {
        const auto too_close = too_close_to_call(*advice.margin, advice.best.front().confidence);
        json["next_choice"] = {{"candidate", candidate(*advice.next_choice)},
                               {"too_close_to_call", or_null(too_close)},
                               {"margin", *advice.margin},
                               {"decided_by", advice.deciding_loss},
                               {"difference_us", to_microseconds(advice.decided_by)}};
    }
    if (const auto& one = advice.in_steady_state)
        json["steady"] = {{"schedule", one->candidate.schedule},
                          {"params", one->candidate.params()},
                          {"makespan_us", to_microseconds(one->makespan)},
                          {"gain", advice.gain_in_steady_state}};
    return json;
}

std::string csv_row(std::size_t rank, const RankedCandidate& one, Seconds best,
                    const AdviceBaseline& baseline, const std::string& pair, const Confidence* confidence) {
    const auto& [candidate, makespan] = one;
    return std::to_string(rank) + "," + candidate.schedule + "," +
           (candidate.chunks > 0 ? std::to_string(candidate.chunks) : "") + "," + candidate.agent + "," +
           candidate.transfer + "," + candidate.gemm + "," + candidate.algorithm + "," +
           Json(to_microseconds(makespan)).dump() + "," + Json(makespan / best - 1).dump() + "," +
           Json(baseline.speedup(makespan)).dump() + "," + (candidate.own_kernel() ? "true" : "false") + "," +
           pair + "," + confidence_cells(confidence) + "\n";
}

std::string to_csv(const SimulatedAdvice& advice) {
    std::string text =
        "rank,schedule,chunks,agent,transfer,gemm,algorithm,makespan_us,regret,speedup,own_kernel,pair," +
        confidence_columns + "\n";
    for (std::size_t i = 0; i < advice.ranked.size(); ++i) {
        const RankedCandidate& one = advice.ranked[i];
        const auto run = std::ranges::find_if(advice.choices, [&](const RankedCandidate& choice) {
            return choice.candidate.same_choice(one.candidate);
        });
        const auto place = static_cast<std::size_t>(run - advice.choices.begin());
        text += csv_row(i + 1, one, advice.ranked.front().makespan, advice.baseline, "",
                        place < advice.best.size() ? &advice.best[place].confidence : nullptr);
    }
    return text;
}

}  // namespace overlap
