#pragma once

#include <string>
#include <vector>

#include "sim/run/scenario.hpp"

namespace overlap {

/// One way to run a workload: a schedule with the parameters that advice and baselines choose. All other
/// parameters keep their defaults.
struct Candidate {
    std::string schedule;
    int chunks = 0;        ///< 0: the schedule does not cut shards
    std::string agent;     ///< dma or cu
    std::string transfer;  ///< pull or push
    std::string gemm;      ///< ring_chunked: one GEMM a shard or a chunk; else empty
    /// Whose kernel does a whole collective: "library", or one of `all_reduce_kernels`; else empty
    std::string algorithm = {};

    /// The "params" of a run config.
    Json params() const;
    /// "hetero_fused_1d/4/dma/pull", "ring_chunked/8/cu/push/chunk", "shard_p2p/-/dma/pull",
    /// "serial/-/library"; unique.
    std::string label() const;
    bool by_library() const { return algorithm == name_of(CollectiveKernel::library); }
    /// For readers: the label, or "serial by RCCL" for one by this library.
    std::string name(const std::string& library) const;
    /// Whether it needs a kernel of one's own (ScheduleEntry::own_kernel).
    bool own_kernel() const;
    /// Whether both are one choice: the same schedule, agent and GEMMs, whatever the number of chunks and the
    /// direction of transfers.
    bool same_choice(const Candidate& other) const;
    friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// Which candidates advice may choose.
struct AllowedCandidates {
    std::vector<std::string> agents;  ///< empty: all agents
    bool own_kernels = true;          ///< also those that need a kernel of the user's own
    /// Whose kernels do whole collectives (Candidate::algorithm); empty: any, and copies
    std::vector<std::string> algorithms = {};

    bool has(const Candidate& candidate) const;
    bool has(bool own_kernel, const std::string& agent) const;
};

/// Chunk counts of candidates.
inline constexpr std::array chunk_counts{1, 2, 4, 8, 16};

/// Every schedule that handles the workload, with every agent, chunk count and transfer direction. Equivalent
/// names are left out: `ficco` (its points have names), `hierarchical_chunked` on one node (equals
/// hetero_fused_1d), `serial`'s library collectives, and column blocks of one chunk (equal row chunks of
/// one). DMA copies go in both directions, kernel copies in their default direction (push). Never empty.
std::vector<Candidate> candidates_for(const Workload& workload, const Topology& topology);

/// Every schedule of whole collectives with those of the vendor's library (NCCL, RCCL), if the device has
/// measurements of a library, and with each kernel that was measured for all-reduces of as many GPUs, if all are
/// such. Empty if no collective is within a node: the library was measured in one.
std::vector<Candidate> library_candidates(const Workload& workload, const Topology& topology);

/// The library's name of a device's "RCCL, 64 channels" or "NCCL 2.29.2 (estimate: as of h100)".
std::string short_name(const std::string& library);

/// The scenario with the candidate's schedule and parameters. Throws UserError if they do not fit the
/// scenario (for example more chunks than rows).
Scenario with_candidate(const Scenario& scenario, const Candidate& candidate);

}  // namespace overlap
