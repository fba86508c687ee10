#pragma once

#include <functional>

#include "sim/run/run_config.hpp"
#include "sim/schedules/listed_pairs.hpp"

namespace overlap {

/// How the pairs of a list run.
struct ListPlan {
    std::vector<PairChoice> pairs;  ///< those that a schedule runs, in the order of the list
    std::string whole;              ///< a line on the others; empty if the schedule was to run none
};

/// The pairs of a list (see pair_at) with their schedules: those of the config's "schedules", and `schedule` for every
/// other pair that it serves, unless it serves whole lists. Of pairs that share an operator the first is taken.
/// `find` gives a schedule by name. Throws UserError if "schedules" names what is no pair's GEMM or a schedule
/// that does not serve the pair, or if `schedule` serves neither the list nor a pair of it.
ListPlan plan_list(const RunConfig& config, const SchedulePtr& schedule, const Workload& workload,
                   const Topology& topology, const std::function<SchedulePtr(const std::string&)>& find);

}  // namespace overlap
