#pragma once

#include "sim/advise/actions.hpp"
#include "sim/advise/machine_constants.hpp"
#include "sim/advise/regret_tree.hpp"
#include "sim/advise/scenario_table.hpp"

namespace overlap {

/// A decision tree whose leaves are actions, for schedules of library kernels or for all.
struct Heuristic {
    bool own_kernels = false;
    RegretTree tree;
    std::vector<Action> actions;
};

/// Fits to the scenarios of a table, each machine of equal weight, with the same options for both kinds.
Heuristic fit_heuristic(std::span<const SimulatedScenario> table, const ConfigFolder& folder,
                        bool own_kernels);

/// The decision table, for people.
std::string to_text(const Heuristic& heuristic);
/// models/heuristic/overlap_advice.hpp with both trees. Ends with a line break.
std::string to_header(const Heuristic& library, const Heuristic& own_kernels);

/// Advice for one scenario: by the header as it was compiled in.
Candidate shipped_advice(const overlap_advice::Machine& machine, const overlap_advice::Operator& op,
                         bool own_kernels);
/// The same by a heuristic just fitted.
Candidate advice_by(const Heuristic& heuristic, const overlap_advice::Machine& machine,
                    const overlap_advice::Operator& op);

/// Machine constants by topology and type, looked up once.
class ConstantsOf {
public:
    explicit ConstantsOf(const ConfigFolder& folder) : folder_(folder) {}
    overlap_advice::Machine operator()(const std::string& topology, DType dtype);

private:
    const ConfigFolder& folder_;
    std::map<std::string, MachineConstants> known_;
};

/// Regret of an advised candidate among the simulated ones; without `own_kernels` flag_gated is not among
/// them. Throws UserError where the table lacks the advised candidate.
double regret_of(const SimulatedScenario& row, const Candidate& advised, bool own_kernels);

/// Judged by group: topology, or "all".
struct Judgement {
    std::string group;
    bool own_kernels = false;
    RegretSummary heuristic;
    RegretSummary least_estimate;  ///< the same without the tree
    RegretSummary one_choice;      ///< the single candidate that is best on average for the group
};
/// The shipped heuristic on a table: each topology, then all, first without flag_gated.
std::vector<Judgement> judge(std::span<const SimulatedScenario> table, const ConfigFolder& folder);
std::string to_text(std::span<const Judgement> judgements);

}  // namespace overlap
