#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/run/effects.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// Makespans of one graph with their seeds, the shortest first.
using Makespans = std::vector<std::pair<Seconds, std::uint64_t>>;
/// The one of nearest rank.
const Makespans::value_type& quantile(const Makespans& sorted, double share);

/// Medians over the seeds of one graph with one set of effects.
struct Ends {
    Seconds all;
    Seconds communication;  ///< of the last transfer or reduction
};

/// Times that no order of a graph's tasks, and no engine, can be faster than: the longest chain of bodies
/// over edges and streams, or the resource that is busy for longest, whichever is longer. Of each side alone,
/// without latencies and contention.
struct LeastTimes {
    Seconds computation;    ///< parts of the pair's GEMM no slower than their share of the whole; no packing
    Seconds communication;  ///< transfers and reductions
};

/// One graph of a scenario, simulated under any effects. Thread-safe; both must outlive it.
class Experiment {
public:
    Experiment(const Scenario& scenario, const TaskGraph& graph);

    std::vector<Cost> price(const Effects& effects) const { return pricer_.price(effects); }
    /// Makespans of all seeds (one, where nothing is left unspecified), and a run with their median.
    std::pair<Makespans, EngineResult> median_run(std::span<const Cost> costs) const;
    Ends ends(const Effects& effects) const;
    Seconds makespan(const Effects& effects) const { return ends(effects).all; }
    /// Transfers and reductions alone.
    Seconds communication(Effects effects) const;
    /// Computation alone, each operator whole: the GPU with most of it.
    Seconds computation(const Effects& effects) const;
    LeastTimes least_times() const;
    /// Whether no transfer and no reduction waits for computation. Where contention and launches are off,
    /// too, nothing is shared with it, and they end as they would alone.
    bool communication_is_free() const;
    const Pricer& pricer() const { return pricer_; }

private:
    bool several_orders(std::span<const Cost> costs) const;
    EngineResult run(std::span<const Cost> costs, std::uint64_t seed) const;
    /// Calls `visit(result, seed)` for a run with each seed, one where no order is left unspecified.
    template <class Visit>
    void for_each_seed(std::span<const Cost> costs, Visit&& visit) const;
    Seconds end_of_communication(const EngineResult& result) const;

    const Scenario& scenario_;
    const TaskGraph& graph_;
    std::unique_ptr<Engine> engine_;
    Pricer pricer_;
};

}  // namespace overlap
