#include <tbb/parallel_for.h>
#include <algorithm>
#include <limits>

#include "sim/advise/heuristic.hpp"

namespace overlap {
namespace {

using namespace overlap_advice;

/// Regret of each action; infinite if the machine can't run the action's candidate.
std::vector<double> regrets_of_actions(const SimulatedScenario& row, const std::vector<Action>& actions,
                                       const Estimates& estimates, bool own_kernels) {
    std::vector<double> regrets;
    for (const Action& action : actions) {
        const Candidate said = candidate_of(advice_of(action.plan, action.rule, action.x, estimates));
        regrets.push_back(row.makespan_us.contains(said.label()) ? regret_of(row, said, own_kernels)
                                                                 : std::numeric_limits<double>::infinity());
    }
    return regrets;
}

double weight_of(std::span<const SimulatedScenario> table, const std::string& topology) {
    const auto same = std::ranges::count_if(
        table, [&](const SimulatedScenario& row) { return row.scenario.topology == topology; });
    return 1.0 / static_cast<double>(same);
}

}  // namespace

double regret_of(const SimulatedScenario& row, const Candidate& advised, bool own_kernels) {
    double best = std::numeric_limits<double>::infinity();
    for (const auto& [label, time] : row.makespan_us)
        if (own_kernels || !own_kernel(label)) best = std::min(best, time);
    const auto found = row.makespan_us.find(advised.label());
    if (found == row.makespan_us.end())
        throw UserError("the table of scenarios has no makespan of '" + advised.label() + "' on " +
                        row.scenario.topology + " (simulate it anew)");
    return found->second / best - 1;
}

overlap_advice::Machine ConstantsOf::operator()(const std::string& topology, DType dtype) {
    return known_.try_emplace(topology, topology, folder_).first->second.of(dtype);
}

Heuristic fit_heuristic(std::span<const SimulatedScenario> table, const ConfigFolder& folder,
                        bool own_kernels, const std::function<void()>& priced) {
    if (table.empty()) throw UserError("the table of scenarios has no row to fit to");
    Heuristic result{own_kernels, {}, all_actions(own_kernels)};
    ConstantsOf constants(folder);
    std::vector<overlap_advice::Machine> machines;
    for (const SimulatedScenario& row : table)
        machines.push_back(constants(row.scenario.topology, row.scenario.pair.gemm.dtype));

    RegretSamples samples{feature_count, result.actions.size(), {}, {}, {}};
    samples.known.resize(table.size());
    samples.regret.resize(table.size());
    samples.weight.resize(table.size());
    tbb::parallel_for(std::size_t{0}, table.size(), [&](std::size_t i) {
        const overlap_advice::Operator op = heuristic_operator(table[i].scenario.pair);
        const Estimates estimates(machines[i], op, own_kernels);
        const Features known = features(estimates);
        samples.known[i].assign(known.begin(), known.end());
        samples.regret[i] = regrets_of_actions(table[i], result.actions, estimates, own_kernels);
        samples.weight[i] = weight_of(table, table[i].scenario.topology);
        if (priced) priced();
    });
    result.tree = fit_tree(samples, TreeOptions{});
    return result;
}

Candidate advice_by(const Heuristic& heuristic, const overlap_advice::Machine& machine,
                    const overlap_advice::Operator& op) {
    const Estimates estimates(machine, op, heuristic.own_kernels);
    const Action& action = heuristic.actions[action_of(heuristic.tree, features(estimates))];
    return candidate_of(advice_of(action.plan, action.rule, action.x, estimates));
}

}  // namespace overlap
