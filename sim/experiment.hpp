#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/effects.hpp"
#include "sim/engine/engine.hpp"
#include "sim/scenario.hpp"

namespace overlap {

/// Makespans of one graph with their seeds, the shortest first.
using Makespans = std::vector<std::pair<Seconds, std::uint64_t>>;
/// The one of nearest rank.
const Makespans::value_type& quantile(const Makespans& sorted, double share);

/// One graph of a scenario, simulated under any effects. Thread-safe; both must outlive it.
class Experiment {
public:
    Experiment(const Scenario& scenario, const TaskGraph& graph);

    std::vector<Cost> price(const Effects& effects) const { return pricer_.price(effects); }
    /// Makespans of all seeds (one, where nothing is left unspecified), and a run with their median.
    std::pair<Makespans, EngineResult> median_run(std::span<const Cost> costs) const;
    /// The median over the seeds.
    Seconds makespan(const Effects& effects) const;
    /// Transfers and reductions alone.
    Seconds communication(Effects effects) const;
    /// Computation alone, each operator whole: the GPU with most of it.
    Seconds computation(const Effects& effects) const;
    const Pricer& pricer() const { return pricer_; }

private:
    bool several_orders(std::span<const Cost> costs) const;
    EngineResult run(std::span<const Cost> costs, std::uint64_t seed) const;
    Makespans makespans(std::span<const Cost> costs) const;

    const Scenario& scenario_;
    const TaskGraph& graph_;
    std::unique_ptr<Engine> engine_;
    Pricer pricer_;
};

}  // namespace overlap
