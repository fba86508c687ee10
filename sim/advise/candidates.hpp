#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/run/run.hpp"

namespace overlap {

/// One way to run a workload: a schedule with the parameters that advice decides. All others keep their
/// defaults.
struct Candidate {
    std::string schedule;
    int chunks = 0;        ///< 0: the schedule does not cut shards
    std::string agent;     ///< dma or cu
    std::string transfer;  ///< pull or push
    std::string gemm;      ///< ring_chunked: grain of its GEMMs; else empty
    bool library =
        false;  ///< whole collectives by the vendor's library (algorithm=library), on compute units

    /// The "params" of a run config.
    Json params() const;
    /// "hetero_fused_1d/4/dma/pull", "ring_chunked/8/cu/push/chunk", "shard_p2p/-/dma/pull",
    /// "serial/-/library"; unique.
    std::string label() const;
    friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// Of a candidate's label: whether its GEMMs poll or set flags, which no library's kernels do.
bool uses_flags(const std::string& label);
/// Reads what label() gave. Throws UserError that begins with `where`.
Candidate parse_candidate(const std::string& label, const std::string& where);

/// Chunk counts that are tried.
inline constexpr std::array chunk_counts{1, 2, 4, 8, 16};

/// Every schedule that handles the workload with every agent, chunk count and direction of transfer. Left out
/// are other names of the same thing: `ficco` (its points have names), `hierarchical_chunked` on one node
/// (is hetero_fused_1d), `serial`'s library collectives, and column blocks of one chunk (row chunks of one).
/// DMA copies are tried in both directions, copies by kernels as by default (pushed). Never empty. `agents`
/// empty: all.
std::vector<Candidate> candidates_for(const Workload& workload, const Topology& topology,
                                      std::span<const std::string> agents = {});

/// Every schedule of whole collectives with those of the vendor's library (NCCL, RCCL), where the device has
/// measurements of one. Empty between nodes: the library was measured in one. Not among candidates_for, whose
/// candidates the tables of the static heuristic have.
std::vector<Candidate> library_candidates(const Workload& workload, const Topology& topology);

/// The scenario with the candidate's schedule and parameters instead of its own. Throws UserError where they
/// do not go with it (more chunks than rows).
Scenario with_candidate(const Scenario& scenario, const Candidate& candidate);

}  // namespace overlap
