#pragma once

#include <cstdint>
#include <vector>

#include "models/costs.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// GEMMs that a kernel of another stream races for compute units, because both become ready with the end of the same task.
/// - A copy kernel that waits for the task before the GEMM on its stream: whether the GEMM or the copy kernel is first changes
///   from execution to execution, so it is drawn for each GEMM (DeviceLaunch::gemm_first). On more than four GPUs GEMMs are
///   always first: nothing was measured there, and one GPU is simulated for all that are alike.
/// - A library's collective that waits for nothing and was enqueued before a GEMM that waits for nothing: the GEMM is second
///   (traces/h200_2/collectives_2026_11: NCCL launched first was first in 240 of 240). Released by one event, either is first
///   on half of the ranks; that is not modelled.
/// - A sum or a local copy that waits for that task, or a local copy behind the local copy that the GEMM waits for: the GEMM is
///   second, because it takes longer to start (traces/h100_2/chains.tar.xz, h200_2/chains.tar.xz).
class Races {
public:
    Races() = default;
    /// `costs`: with contention, without which nothing claims units.
    Races(const TaskGraph& graph, const Costs& costs, const Machine& machine);

    std::size_t count() const { return gemms_.size(); }
    /// Whether executions differ.
    bool open() const { return copies_race_ && gemm_first_ > 0 && gemm_first_ < 1; }
    /// The costs in one execution. A GEMM that is second claims its units later by a part of its time, so that its
    /// time alone stays the same.
    Costs drawn(Costs costs, std::uint64_t seed) const;

private:
    void add_roots(const TaskGraph& graph, const Costs& costs, const Machine& machine);

    struct Gemm {
        TaskId task, before;
        Seconds start;               ///< from when it is ready until it claims units, if it is second
        ResourceId clock;            ///< of its GPU
        std::vector<TaskId> copies;  ///< none: it is second
    };
    std::vector<Gemm> gemms_;
    bool copies_race_ = false;
    double gemm_first_ = 1;
};

}  // namespace overlap
