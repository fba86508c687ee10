#include <tbb/parallel_for.h>

#include "models/heuristic/overlap_advice.hpp"
#include "sim/advise/heuristic.hpp"
#include "sim/core/ranges.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

struct Regrets {
    std::vector<double> heuristic, least_estimate;
};

/// Regrets of the single candidate, among those that every scenario has, with the lowest mean cost.
RegretSummary one_choice(std::span<const SimulatedScenario* const> rows, bool own_kernels) {
    std::optional<RegretSummary> best;
    for (const auto& [label, time] : rows.front()->makespan_us) {
        if (!own_kernels && own_kernel(label)) continue;
        std::vector<double> regrets;
        for (const SimulatedScenario* row : rows)
            if (row->makespan_us.contains(label))
                regrets.push_back(regret_of(*row, parse_candidate(label, "table"), own_kernels));
        if (regrets.size() < rows.size()) continue;
        const RegretSummary summary = summarise_regrets(regrets);
        if (!best || summary.mean_regret < best->mean_regret) best = summary;
    }
    return best.value_or(RegretSummary{});
}

Judgement judged(const std::string& group, std::span<const SimulatedScenario* const> rows, bool own_kernels,
                 const std::vector<overlap_advice::Machine>& machines, const std::function<void()>& advised) {
    Regrets regrets{std::vector<double>(rows.size()), std::vector<double>(rows.size())};
    tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
        const overlap_advice::Operator op = heuristic_operator(rows[i]->scenario.pair);
        const Candidate estimated =
            candidate_of(overlap_advice::least_estimate(machines[i], op, own_kernels));
        regrets.heuristic[i] = regret_of(*rows[i], shipped_advice(machines[i], op, own_kernels), own_kernels);
        regrets.least_estimate[i] = regret_of(*rows[i], estimated, own_kernels);
        if (advised) advised();
    });
    return {group, own_kernels, summarise_regrets(regrets.heuristic),
            summarise_regrets(regrets.least_estimate), one_choice(rows, own_kernels)};
}

}  // namespace

Candidate shipped_advice(const overlap_advice::Machine& machine, const overlap_advice::Operator& op,
                         bool own_kernels) {
    return candidate_of(own_kernels ? overlap_advice::advise_any(machine, op)
                                    : overlap_advice::advise_library(machine, op));
}

std::vector<Judgement> judge(std::span<const SimulatedScenario> table, const ConfigFolder& folder,
                             const std::function<void()>& advised) {
    ConstantsOf constants(folder);
    std::vector<std::string> groups;
    for (const SimulatedScenario& row : table)
        if (!contains(groups, row.scenario.topology)) groups.push_back(row.scenario.topology);
    groups.push_back("all");
    std::vector<Judgement> judgements;
    for (const bool own_kernels : {false, true})
        for (const std::string& group : groups) {
            std::vector<const SimulatedScenario*> rows;
            std::vector<overlap_advice::Machine> machines;
            for (const SimulatedScenario& row : table) {
                if (group != "all" && row.scenario.topology != group) continue;
                rows.push_back(&row);
                machines.push_back(constants(row.scenario.topology, row.scenario.pair.gemm.dtype));
            }
            if (!rows.empty()) judgements.push_back(judged(group, rows, own_kernels, machines, advised));
        }
    return judgements;
}

std::string to_text(std::span<const Judgement> judgements) {
    std::string text;
    for (std::size_t i = 0; i < judgements.size(); ++i) {
        const Judgement& one = judgements[i];
        if (i == 0 || judgements[i - 1].own_kernels != one.own_kernels)
            text += std::string(i == 0 ? "" : "\n") +
                    left(one.own_kernels ? "any kernels" : "library kernels", 16) + right("n", 6) +
                    right("hits", 9) + right("regret", 9) + right("worst", 9) +
                    "    estimates alone      best single choice\n";
        const auto both = [](const RegretSummary& summary) {
            return right(percent_text(summary.hit_rate), 10) +
                   right(percent_text(summary.mean_regret, 2), 11);
        };
        text += "  " + left(one.group, 14) + right(std::to_string(one.heuristic.scenarios), 6) +
                right(percent_text(one.heuristic.hit_rate), 9) +
                right(percent_text(one.heuristic.mean_regret, 2), 9) +
                right(percent_text(one.heuristic.worst_regret, 0), 9) + both(one.least_estimate) +
                both(one.one_choice) + "\n";
    }
    return text + "hits: within 2 % of the best candidate by simulation\n";
}

}  // namespace overlap
