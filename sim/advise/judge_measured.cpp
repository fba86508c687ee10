#include "sim/advise/advise.hpp"
#include "sim/compare/compare_cases.hpp"
#include "sim/core/ranges.hpp"
#include "sim/report/text_format.hpp"
#include "sim/run/resolver.hpp"

#include <algorithm>
#include <map>

namespace overlap {
namespace {

/// The measured variants of one scenario.
struct MeasuredScenario {
    const Scenario* scenario = nullptr;
    std::map<std::string, double> measured_us;  ///< by label of the candidate
};

/// The candidate of a measured case; its other parameters keep their measured values.
Candidate measured_candidate(const Scenario& scenario) {
    const Json params = to_json(scenario.params, scenario.schedule->parameters);
    Candidate candidate{scenario.schedule->name, 0, params.value("agent", "dma"),
                        params.value("transfer", "pull"), ""};
    if (const std::string algorithm = params.value("algorithm", "");
        contains(collective_kernel_names, algorithm))
        candidate.algorithm = algorithm;
    if (params.contains("chunks")) candidate.chunks = params["chunks"];
    if (params.contains("gemm") && params["gemm"] != "shard" && candidate.chunks > 1)
        candidate.gemm = params["gemm"];
    return candidate;
}

std::string line(const std::string& name, const RegretSummary& summary) {
    return left(name, 20) + right(std::to_string(summary.scenarios), 5) +
           right(percent_text(summary.hit_rate), 9) + right(percent_text(summary.mean_regret, 2), 9) +
           right(percent_text(summary.worst_regret), 9) + "\n";
}

}  // namespace

MeasuredJudgement judge_measured(const std::vector<MeasuredCase>& cases, const ConfigFolder& folder,
                                 const std::function<void()>& predicted) {
    const Comparison comparison = compare(cases, folder, predicted);
    Resolver resolver(folder);
    const std::vector<Scenario> scenarios =
        mapped(cases, [&](const MeasuredCase& one) { return resolver.resolve(one.config); });
    std::map<std::string, MeasuredScenario> by_scenario;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const Scenario& scenario = scenarios[i];
        const std::string key =
            cases[i].system + scenario.machine->topology.name() + to_json(scenario.workload).dump();
        MeasuredScenario& entry = by_scenario[key];
        entry.scenario = &scenario;
        double& time = entry.measured_us[measured_candidate(scenario).label()];
        const double now = to_microseconds(cases[i].makespan());
        time = time == 0 ? now : std::min(time, now);
    }

    MeasuredJudgement result;
    std::vector<double> by_heuristic;
    ConstantsOf constants(folder);
    for (const auto& [key, entry] : by_scenario) {
        const Pair* pair = entry.scenario->workload.pair();
        if (pair == nullptr || pair->order == Order::independent || entry.measured_us.size() < 2) continue;
        const SimulatedScenario row{{}, entry.measured_us};
        const auto machine = constants(entry.scenario->machine->topology.name(), pair->gemm.dtype);
        const Candidate said = shipped_advice(machine, heuristic_operator(*pair), false);
        // If the advised chunk count was not measured, the nearest measured one of the same
        // schedule, agent and direction.
        std::optional<Candidate> nearest;
        for (const auto& [label, time] : entry.measured_us) {
            Candidate measured = parse_candidate(label, "measured case");
            const int chunks = measured.chunks;
            measured.chunks = said.chunks;
            if (measured != said) continue;
            measured.chunks = chunks;
            if (!nearest || std::abs(chunks - said.chunks) < std::abs(nearest->chunks - said.chunks))
                nearest = measured;
        }
        if (nearest)
            by_heuristic.push_back(regret_of(row, *nearest, false));
        else
            ++result.heuristic_not_measured;
    }
    result.simulation = summarise_regrets(mapped(comparison.scenarios, &RankedScenario::regret));
    result.heuristic = summarise_regrets(by_heuristic);
    return result;
}

std::string to_text(const MeasuredJudgement& judgement) {
    return left("measured", 20) + right("n", 5) + right("hits", 9) + right("regret", 9) + right("worst", 9) +
           "\n" + line("  by simulation", judgement.simulation) +
           line("  static heuristic", judgement.heuristic) + "  " +
           std::to_string(judgement.heuristic_not_measured) +
           " scenarios left out: what the heuristic advises was not measured\n";
}

}  // namespace overlap
