#pragma once

#include <cstdint>
#include <vector>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// GEMMs that a copy kernel of another stream races for compute units, because both wait for the same task: the one before the
/// GEMM on its stream. Whether the GEMM or the copy kernel is first changes from execution to execution, so it is drawn for each
/// GEMM (DeviceLaunch::gemm_first). On more than four GPUs GEMMs are always first: nothing was measured there, and one GPU is
/// simulated for all that are alike.
class Races {
public:
    Races() = default;
    /// `costs`: with contention, without which nothing claims units.
    Races(const TaskGraph& graph, const Costs& costs, const Machine& machine);

    bool any() const { return !gemms_.empty(); }
    /// Whether executions differ.
    bool open() const { return any() && gemm_first_ > 0; }
    /// The costs in one execution. A GEMM that is second claims its units later by the launch that its body contains, so that
    /// its time alone stays the same.
    Costs drawn(Costs costs, std::uint64_t seed) const;

private:
    struct Gemm {
        TaskId task;
        Seconds launch;
    };
    std::vector<Gemm> gemms_;
    double gemm_first_ = 1;
};

}  // namespace overlap
