#include <array>

#include "sim/collectives/collective_algorithm.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {

using BuildCollective = RankTasks(const CollectiveWork&, const RankTasks&, Transfers&);
BuildCollective direct_collective, zero_cta_collective, ring_collective, hierarchical_collective,
    library_collective, one_shot_collective, two_shot_collective, tensorrt_llm_collective;

namespace {

bool is_all_reduce(CollectiveKind kind) {
    return kind == CollectiveKind::all_reduce;
}

bool only_moves(CollectiveKind kind) {
    return kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all;
}

}  // namespace

std::span<const CollectiveAlgorithm> collective_algorithms() {
    static const std::array<CollectiveAlgorithm, 8> entries{{
        {.name = "direct",
         .summary =
             "Each rank exchanges its piece with every peer at once; reductions once all parts are there.",
         .build = direct_collective,
         .by_representatives = true},
        {.name = "ring",
         .summary =
             "P-1 steps between ring neighbours, each rank forwarding what it received (not for all_to_all).",
         .build = ring_collective,
         .handles = [](CollectiveKind kind) { return kind != CollectiveKind::all_to_all; }},
        {.name = "hierarchical",
         .summary =
             "Inside nodes by the fabric, between nodes by each GPU's own NIC to its rail; one node: as direct.",
         .build = hierarchical_collective,
         .by_representatives = true},
        {.name = "library",
         .summary =
             "The vendor library's kernel (RCCL, NCCL) on compute units, at its measured latency and rate.",
         .build = library_collective},
        {.name = "zero_cta",
         .summary =
             "The vendor library without compute units (NCCL_CTA_POLICY_ZERO, RCCL's zero-CU): flags to "
             "all peers, pieces by copy engines, flags; in place, in one node.",
         .build = zero_cta_collective,
         .handles = only_moves,
         .by_representatives = true},
        {.name = "one_shot",
         .summary = "All-reduce of PyTorch's symmetric memory, one_shot_all_reduce: each rank reads all "
                    "operands; as measured.",
         .build = one_shot_collective,
         .handles = is_all_reduce},
        {.name = "two_shot",
         .summary =
             "The same, two_shot_all_reduce_: each rank adds its part of all operands, then all read the "
             "sums; as measured.",
         .build = two_shot_collective,
         .handles = is_all_reduce},
        {.name = "tensorrt_llm",
         .summary = "TensorRT-LLM's own all-reduce, one-shot or two-shot as it chooses; as measured.",
         .build = tensorrt_llm_collective,
         .handles = is_all_reduce},
    }};
    return entries;
}

std::vector<std::string> collective_algorithm_names() {
    return mapped(collective_algorithms(), &CollectiveAlgorithm::name);
}

const CollectiveAlgorithm& collective_algorithm(const std::string& name) {
    const auto found = std::ranges::find(collective_algorithms(), name, &CollectiveAlgorithm::name);
    if (found != collective_algorithms().end()) return *found;
    throw UserError("collective algorithm '" + name + "' is not known" +
                    suggestion(name, collective_algorithm_names()));
}

}  // namespace overlap
