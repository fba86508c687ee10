#include "sim/run/dma_choice.hpp"

#include <algorithm>
#include <array>

#include "sim/run/effects.hpp"
#include "sim/run/experiment.hpp"
#include "sim/schedules/operator_list.hpp"

namespace overlap {
namespace {

bool is_possible(DmaCommands commands, const Scenario& scenario) {
    const bool writes = commands == DmaCommands::broadcast || commands == DmaCommands::swap;
    if (writes && scenario.params.transfers.direction == Direction::pull) return false;
    const std::vector<CollectiveKind> kinds = collectives_of(scenario.workload);
    return std::all_of(kinds.begin(), kinds.end(),
                       [&](CollectiveKind kind) { return can_command(commands, kind); });
}

}  // namespace

TransferOptions fastest_commands(const Scenario& scenario) {
    constexpr std::array candidates{DmaCommands::copy, DmaCommands::one_stream, DmaCommands::broadcast,
                                    DmaCommands::swap, DmaCommands::back_to_back};
    TransferOptions fastest;
    Seconds shortest(1e300);
    for (const DmaCommands commands : candidates) {
        if (!is_possible(commands, scenario)) continue;
        Scenario candidate = scenario;
        candidate.params.transfers.commands = commands;
        const TaskGraph graph = candidate.graph();
        const Seconds makespan = Experiment(candidate, graph).makespan(without(scenario.without));
        if (makespan >= shortest) continue;
        shortest = makespan;
        fastest = candidate.params.transfers;
    }
    return fastest;
}

}  // namespace overlap
