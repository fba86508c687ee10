#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/collectives/transfers.hpp"
#include "sim/core/graph_size.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Size that a collective adds to a graph, and the number of tasks that each rank waits for at its end.
struct CollectiveSize : GraphSize {
    double ends = 0;
};

/// Turns a collective into transfer and reduce tasks.
/// Contract: after the tasks `ready[r]` rank r's own operand is complete; after the returned tasks of rank r
/// its result is. Every rank sends and receives the bytes of the closed form: (P−1)/P of the operand, twice
/// that for all_reduce. An algorithm that forwards pieces of an all_to_all sends them twice, which its
/// summary states. P = 1 adds no task. Called only for kinds that it `handles`.
class CollectiveAlgorithm {
public:
    virtual ~CollectiveAlgorithm() = default;
    virtual bool handles(CollectiveKind kind) const = 0;
    virtual RankTasks build(const CollectiveWork& work, const RankTasks& ready,
                            Transfers& transfers) const = 0;
    /// Whether `build` keeps to Transfers::built; else it needs all ranks.
    virtual bool builds_representatives(DmaCommands) const { return false; }
    /// Exact size of what `build` adds if `ready` has that many tasks for each rank, without building it.
    virtual CollectiveSize size(CollectiveKind kind, double ready, const Transfers& transfers) const = 0;
};

struct CollectiveEntry {
    std::string name;
    std::string summary;
    std::unique_ptr<CollectiveAlgorithm> (*make)();
};

std::span<const CollectiveEntry> collective_algorithms();
std::vector<std::string> collective_algorithm_names();

/// Throws UserError for an unknown name.
std::unique_ptr<CollectiveAlgorithm> make_collective_algorithm(const std::string& name);

}  // namespace overlap
