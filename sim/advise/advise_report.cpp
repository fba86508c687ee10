#include "sim/advise/advise.hpp"
#include "sim/report/report.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

Json json_of(const RankedCandidate& one, Seconds best) {
    return {{"schedule", one.candidate.schedule},
            {"params", one.candidate.params()},
            {"makespan_us", to_microseconds(one.makespan)},
            {"regret", one.makespan / best - 1}};
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
                       " candidates simulated: schedule/chunks/agent/transfer\n\n";
    for (std::size_t i = 0; i < advice.best.size(); ++i) {
        const RankedCandidate& one = advice.ranked[i];
        text += right(std::to_string(i + 1), 3) + "  " + left(one.candidate.label(), 34) +
                right(scale.format(one.makespan), 10) + " " + scale.unit() + "  +" +
                percent_text(one.makespan / best - 1) + "   speed-up " + fixed(advice.best[i].speedup, 3) +
                "\n";
    }
    text += "\nthe best against           makespan\n";
    text += gain_line("  serial", advice.serial, best, scale);
    text += gain_line("  best shard-level", advice.shard_level, best, scale);
    if (advice.runner_up > 0) {
        text += gain_line("  best other schedule", advice.ranked[advice.runner_up], best, scale);
        text += "  decided by " + advice.deciding_loss + ": " + scale.format(advice.decided_by) + " " +
                scale.unit() + " less of it\n";
    }
    const auto said = [&](const std::string& name, const std::optional<RankedCandidate>& one, Seconds least) {
        if (one)
            text += left(name, 26) + right(scale.format(one->makespan), 9) + " " + scale.unit() +
                    "   regret " + percent_text(one->makespan / least - 1) + "   " + one->candidate.label() +
                    "\n";
    };
    if (advice.heuristic) text += "\nthe static heuristic says\n";
    said("  any kernels", advice.heuristic, best);
    Seconds library = advice.ranked.back().makespan;
    for (const RankedCandidate& one : advice.ranked)
        if (one.candidate.schedule != "flag_gated") library = std::min(library, one.makespan);
    said("  library kernels", advice.heuristic_library, library);
    return text;
}

Json to_json(const SimulatedAdvice& advice) {
    const Seconds best = advice.ranked.front().makespan;
    Json json{{"schema", 1},
              {"topology", advice.topology},
              {"workload", advice.workload},
              {"candidates", Json::array()},
              {"best", Json::array()}};
    for (const RankedCandidate& one : advice.ranked) json["candidates"].push_back(json_of(one, best));
    for (const RunResult& run : advice.best) json["best"].push_back(to_json(run));
    const auto put = [&](const char* key, const std::optional<RankedCandidate>& one) {
        json[key] = one ? json_of(*one, best) : Json();
    };
    put("serial", advice.serial);
    put("best_shard_level", advice.shard_level);
    put("heuristic", advice.heuristic);
    put("heuristic_library", advice.heuristic_library);
    if (advice.runner_up > 0)
        json["runner_up"] = {{"candidate", json_of(advice.ranked[advice.runner_up], best)},
                             {"decided_by", advice.deciding_loss},
                             {"difference_us", to_microseconds(advice.decided_by)}};
    return json;
}

std::string to_csv(const SimulatedAdvice& advice) {
    std::string text = "rank,schedule,chunks,agent,transfer,gemm,makespan_us,regret\n";
    for (std::size_t i = 0; i < advice.ranked.size(); ++i) {
        const auto& [candidate, makespan] = advice.ranked[i];
        text += std::to_string(i + 1) + "," + candidate.schedule + "," +
                (candidate.chunks > 0 ? std::to_string(candidate.chunks) : "") + "," + candidate.agent + "," +
                candidate.transfer + "," + candidate.gemm + "," + Json(to_microseconds(makespan)).dump() +
                "," + Json(makespan / advice.ranked.front().makespan - 1).dump() + "\n";
    }
    return text;
}

}  // namespace overlap
