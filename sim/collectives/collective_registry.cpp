#include <array>

#include "sim/collectives/collective_algorithm.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {

std::unique_ptr<CollectiveAlgorithm> make_direct_collective();
std::unique_ptr<CollectiveAlgorithm> make_ring_collective();
std::unique_ptr<CollectiveAlgorithm> make_hierarchical_collective();
std::unique_ptr<CollectiveAlgorithm> make_library_collective();
std::unique_ptr<CollectiveAlgorithm> make_one_shot();
std::unique_ptr<CollectiveAlgorithm> make_two_shot();
std::unique_ptr<CollectiveAlgorithm> make_tensorrt_llm();

std::span<const CollectiveEntry> collective_algorithms() {
    static const std::array<CollectiveEntry, 7> entries{{
        {"direct",
         "Each rank exchanges its piece with every peer at once; reductions once all parts are there.",
         make_direct_collective},
        {"ring",
         "P-1 steps between ring neighbours, each rank forwarding what it received (not for all_to_all).",
         make_ring_collective},
        {"hierarchical",
         "Inside nodes by the fabric, between nodes by each GPU's own NIC to its rail; one node: as direct.",
         make_hierarchical_collective},
        {"library",
         "The vendor library's kernel (RCCL, NCCL) on compute units, at its measured latency and rate.",
         make_library_collective},
        {"one_shot",
         "All-reduce of PyTorch's symmetric memory, one_shot_all_reduce: each rank reads all operands; as measured.",
         make_one_shot},
        {"two_shot",
         "The same, two_shot_all_reduce_: each rank adds its part of all operands, then all read the sums; as measured.",
         make_two_shot},
        {"tensorrt_llm", "TensorRT-LLM's own all-reduce, one-shot or two-shot as it chooses; as measured.",
         make_tensorrt_llm},
    }};
    return entries;
}

std::vector<std::string> collective_algorithm_names() {
    return mapped(collective_algorithms(), &CollectiveEntry::name);
}

std::unique_ptr<CollectiveAlgorithm> make_collective_algorithm(const std::string& name) {
    for (const CollectiveEntry& entry : collective_algorithms())
        if (entry.name == name) return entry.make();
    throw UserError("collective algorithm '" + name + "' is not known" +
                    suggestion(name, collective_algorithm_names()));
}

}  // namespace overlap
