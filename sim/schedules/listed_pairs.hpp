#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/schedules/schedule.hpp"

namespace overlap {

/// Operators `first` and `first` + 1 are a pair: returns the group of the pair's collective.
RankGroup group_at(std::span<const Operator> operators, std::size_t first);

/// The pair that operators `first` and `first` + 1 of a list are: a GEMM, and a collective of its A or of its C, of
/// which the second needs the first and nothing else. None if they are none. If they are a GEMM and a collective and
/// the second needs the first, `why_not` gets the reason. All-gathers are taken to gather rows (shard_dim m).
std::optional<Pair> pair_at(std::span<const Operator> operators, std::size_t first, int ranks,
                            std::string* why_not = nullptr);

/// A pair of a list that a schedule runs as if it were a workload of its own.
struct PairChoice {
    std::size_t first = 0;  ///< index of the first of its two operators
    Pair pair;
    SchedulePtr schedule;  ///< never null
    ScheduleParams params;
    RankGroup group = {};  ///< of the collective; each group runs the schedule by itself

    std::size_t gemm() const { return pair.order == Order::gemm_first ? first : first + 1; }
    std::size_t collective() const { return pair.order == Order::gemm_first ? first + 1 : first; }
    Workload workload() const { return {"pair", "", pair}; }
};

}  // namespace overlap
