#pragma once

#include <functional>

#include "sim/advise/actions.hpp"
#include "sim/advise/machine_constants.hpp"
#include "sim/advise/regret_tree.hpp"
#include "sim/advise/scenario_table.hpp"

namespace overlap {

/// A decision tree whose leaves are actions, for library kernels only or for any kernels.
struct Heuristic {
    bool own_kernels = false;
    RegretTree tree;
    std::vector<Action> actions;
};

/// Fits a tree to the scenarios of a table. All machines have equal weight; both kinds of
/// kernels use the same options. `priced` is called, by any thread, for each scenario of the table.
Heuristic fit_heuristic(std::span<const SimulatedScenario> table, const ConfigFolder& folder,
                        bool own_kernels, const std::function<void()>& priced = nullptr);

/// The decision table as text.
std::string to_text(const Heuristic& heuristic);
/// The text of models/heuristic/overlap_advice.hpp with both trees. Ends with a line break.
std::string to_header(const Heuristic& library, const Heuristic& own_kernels);

/// Advice for one scenario by the compiled-in header.
Candidate shipped_advice(const overlap_advice::Machine& machine, const overlap_advice::Operator& op,
                         bool own_kernels);
/// Advice by a heuristic that was just fitted.
Candidate advice_by(const Heuristic& heuristic, const overlap_advice::Machine& machine,
                    const overlap_advice::Operator& op);

/// Machine constants by topology and type, cached.
class ConstantsOf {
public:
    explicit ConstantsOf(const ConfigFolder& folder) : folder_(folder) {}
    overlap_advice::Machine operator()(const std::string& topology, DType dtype);

private:
    const ConfigFolder& folder_;
    std::map<std::string, MachineConstants> known_;
};

/// Regret of an advised candidate among the simulated ones; flag_gated counts only with `own_kernels`. Throws
/// UserError if the table lacks the advised candidate.
double regret_of(const SimulatedScenario& row, const Candidate& advised, bool own_kernels);

/// Regrets of a group: a topology, or "all".
struct Judgement {
    std::string group;
    bool own_kernels = false;
    RegretSummary heuristic;
    RegretSummary least_estimate;  ///< always the plan with the smallest estimate, without the tree
    RegretSummary one_choice;      ///< the single candidate that is best on average for the group
};
/// Judges the shipped heuristic by a table: each topology, then all; first without flag_gated. `advised` is
/// called, by any thread, four times for each scenario of the table.
std::vector<Judgement> judge(std::span<const SimulatedScenario> table, const ConfigFolder& folder,
                             const std::function<void()>& advised = nullptr);
std::string to_text(std::span<const Judgement> judgements);

}  // namespace overlap
