#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/run/run.hpp"

namespace overlap {

/// One way to run a workload: a schedule with the parameters that advice chooses. All other
/// parameters keep their defaults.
struct Candidate {
    std::string schedule;
    int chunks = 0;        ///< 0: the schedule does not cut shards
    std::string agent;     ///< dma or cu
    std::string transfer;  ///< pull or push
    std::string gemm;      ///< ring_chunked: one GEMM a shard or a chunk; else empty
    /// Whole collectives by the vendor's library (algorithm=library), on compute units
    bool by_library = false;

    /// The "params" of a run config.
    Json params() const;
    /// "hetero_fused_1d/4/dma/pull", "ring_chunked/8/cu/push/chunk", "shard_p2p/-/dma/pull",
    /// "serial/-/library"; unique.
    std::string label() const;
    friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// Whether the GEMMs of a candidate with this label poll or set flags, which no library's kernels do.
bool uses_flags(const std::string& label);
/// Reads a label. Throws UserError that begins with `where`.
Candidate parse_candidate(const std::string& label, const std::string& where);

/// Chunk counts of candidates.
inline constexpr std::array chunk_counts{1, 2, 4, 8, 16};

/// Every schedule that handles the workload, with every agent, chunk count and transfer direction. Equivalent
/// names are left out: `ficco` (its points have names), `hierarchical_chunked` on one node (equals
/// hetero_fused_1d), `serial`'s library collectives, and column blocks of one chunk (equal row chunks of
/// one). DMA copies go in both directions, kernel copies in their default direction (push). Never empty.
/// Empty `agents`: all agents.
std::vector<Candidate> candidates_for(const Workload& workload, const Topology& topology,
                                      std::span<const std::string> agents = {});

/// Every schedule of whole collectives with those of the vendor's library (NCCL, RCCL), if the device has
/// measurements of a library. Empty for several nodes: the library was measured in one. Kept apart from
/// candidates_for, which defines the tables of the static heuristic.
std::vector<Candidate> library_candidates(const Workload& workload, const Topology& topology);

/// The scenario with the candidate's schedule and parameters. Throws UserError if they do not fit the
/// scenario (for example more chunks than rows).
Scenario with_candidate(const Scenario& scenario, const Candidate& candidate);

}  // namespace overlap
