#include "sim/advise/advise.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

Json json_of(const RankedCandidate& one, const AdviceBaseline& baseline, Json regret) {
    return {{"schedule", one.candidate.schedule},
            {"params", one.candidate.params()},
            {"makespan_us", to_microseconds(one.makespan)},
            {"speedup", baseline.speedup(one.makespan)},
            {"regret", std::move(regret)}};
}

std::string baseline_line(const AdviceBaseline& baseline, const TimeScale& scale) {
    return "speed-up over " + baseline.serial.candidate.label() + ", " +
           scale.format(baseline.serial.makespan) + " " + scale.unit() +
           ": the fastest execution without overlap" + (baseline.allowed ? "" : " (--agent leaves it out)") +
           "\n";
}

std::string gain_line(const std::string& name, const std::optional<RankedCandidate>& other, Seconds best,
                      const TimeScale& scale) {
    if (!other) return "";
    return left(name, 26) + right(scale.format(other->makespan), 9) + " " + scale.unit() + "   " +
           fixed(other->makespan / best, 3) + " x   " + other->candidate.label() + "\n";
}

}  // namespace

std::string to_text(const SimulatedAdvice& advice) {
    const Seconds best = advice.ranked.front().makespan;
    const TimeScale scale(advice.ranked.back().makespan);
    std::string text = clipped(advice.scenario) + "\n" + std::to_string(advice.ranked.size()) +
                       " candidates simulated: schedule/chunks/agent/transfer\n";
    for (const auto& change : advice.what_if.items())
        text += clipped("what-if " + change.key() + " = " + shown(change.value())) + "\n";
    for (const std::string& note : advice.remarks.notes)
        for (const std::string& line : field(left("best: note", label_columns), note)) text += line + "\n";
    text += baseline_line(advice.baseline, scale) + "\n";
    for (std::size_t i = 0; i < advice.best.size(); ++i) {
        const RankedCandidate& one = advice.ranked[i];
        text += right(std::to_string(i + 1), 3) + "  " + left(one.candidate.label(), 34) +
                right(scale.format(one.makespan), 10) + " " + scale.unit() + "  +" +
                percent_text(one.makespan / best - 1) + "   speed-up " + fixed(advice.best[i].speedup, 3) +
                "\n";
    }
    text += "\nthe best against           makespan\n";
    text += gain_line("  fastest serial", advice.baseline.serial, best, scale);
    text += gain_line("  best shard-level", advice.shard_level, best, scale);
    if (advice.runner_up > 0) {
        text += gain_line("  best other schedule", advice.ranked[advice.runner_up], best, scale);
        text += "  decided by " + advice.deciding_loss + ": " + scale.format(advice.decided_by) + " " +
                scale.unit() + " less of it\n";
    }
    const auto add = [&](const std::string& name, const std::optional<HeuristicAdvice>& one) {
        if (one)
            text += left(name, 26) + right(scale.format(one->said.makespan), 9) + " " + scale.unit() + "   " +
                    (one->regret ? "regret " + percent_text(*one->regret) : "left out by --agent") + "   " +
                    one->said.candidate.label() + "\n";
    };
    if (advice.heuristic || advice.heuristic_library) text += "\nthe static heuristic says\n";
    add("  any kernels", advice.heuristic);
    add("  library kernels", advice.heuristic_library);
    return text;
}

Json to_json(const SimulatedAdvice& advice) {
    const Seconds best = advice.ranked.front().makespan;
    Json json{
        {"schema", 1},
        {"topology", advice.topology},
        {"workload", advice.workload},
        {"gemm_library", advice.remarks.gemm_library.empty() ? Json() : Json(advice.remarks.gemm_library)},
        {"notes", advice.remarks.notes},
        {"baseline", json_of(advice.baseline.serial, advice.baseline, Json())},
        {"candidates", Json::array()},
        {"best", Json::array()}};
    if (!advice.what_if.empty()) json["what_if"] = advice.what_if;
    json["baseline"].erase("regret");
    json["baseline"]["allowed"] = advice.baseline.allowed;
    const auto candidate = [&](const RankedCandidate& one) {
        return json_of(one, advice.baseline, one.makespan / best - 1);
    };
    for (const RankedCandidate& one : advice.ranked) json["candidates"].push_back(candidate(one));
    for (const RunResult& run : advice.best) json["best"].push_back(to_json(run));
    json["best_shard_level"] = advice.shard_level ? candidate(*advice.shard_level) : Json();
    const auto put = [&](const char* key, const std::optional<HeuristicAdvice>& one) {
        json[key] =
            one ? json_of(one->said, advice.baseline, one->regret ? Json(*one->regret) : Json()) : Json();
    };
    put("heuristic", advice.heuristic);
    put("heuristic_library", advice.heuristic_library);
    if (advice.runner_up > 0)
        json["runner_up"] = {{"candidate", candidate(advice.ranked[advice.runner_up])},
                             {"decided_by", advice.deciding_loss},
                             {"difference_us", to_microseconds(advice.decided_by)}};
    return json;
}

std::string to_csv(const SimulatedAdvice& advice) {
    std::string text = "rank,schedule,chunks,agent,transfer,gemm,algorithm,makespan_us,regret,speedup\n";
    for (std::size_t i = 0; i < advice.ranked.size(); ++i) {
        const auto& [candidate, makespan] = advice.ranked[i];
        text += std::to_string(i + 1) + "," + candidate.schedule + "," +
                (candidate.chunks > 0 ? std::to_string(candidate.chunks) : "") + "," + candidate.agent + "," +
                candidate.transfer + "," + candidate.gemm + "," + (candidate.by_library ? "library" : "") + "," +
                Json(to_microseconds(makespan)).dump() + "," +
                Json(makespan / advice.ranked.front().makespan - 1).dump() + "," +
                Json(advice.baseline.speedup(makespan)).dump() + "\n";
    }
    return text;
}

}  // namespace overlap
