#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/collectives/transfers.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// An algorithm turns a collective into transfer and reduce tasks.
struct CollectiveAlgorithm {
    std::string name;
    std::string summary;
    /// Contract: after the tasks `ready[r]` rank r's own operand is complete; after the returned tasks of rank r
    /// its result is. Every rank sends and receives the bytes of the closed form: (P−1)/P of the operand, twice
    /// that for all_reduce. An algorithm that forwards pieces of an all_to_all sends them twice, which its
    /// summary states. P = 1 adds no task. Called only for kinds that it `handles`.
    RankTasks (*build)(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) = nullptr;
    bool (*handles)(CollectiveKind kind) = [](CollectiveKind) { return true; };
    bool by_representatives =
        false;  ///< `build` keeps to Transfers::built with plain copies; else it needs all ranks
};

/// As CollectiveAlgorithm::build, of an all-to-all by DeepEP's kernel.
RankTasks exchange_by_deepep(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers);

std::span<const CollectiveAlgorithm> collective_algorithms();
std::vector<std::string> collective_algorithm_names();

/// Throws UserError for an unknown name.
const CollectiveAlgorithm& collective_algorithm(const std::string& name);

}  // namespace overlap
