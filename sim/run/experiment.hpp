#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/pricing/effects.hpp"
#include "sim/pricing/races.hpp"
#include "sim/quotient/representatives.hpp"
#include "sim/run/least_times.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// Effects that are on. In a steady state tasks do not wait for their calls, because hosts run ahead (period_of
/// counts them).
Effects effects_of(const Scenario& scenario);

/// Makespans of one graph with their seeds, shortest first.
using Makespans = std::vector<std::pair<Seconds, std::uint64_t>>;
/// The quantile by nearest rank.
const Makespans::value_type& quantile(const Makespans& sorted, double share);

/// When a graph ends, with one set of effects and one seed.
struct RunEnds {
    Seconds all;
    Seconds communication;  ///< of the last transfer or reduction
};

/// One graph of a scenario, simulated under any effects. Of GPUs that are alike one is priced and simulated
/// (sim/quotient); the graph may be that of representatives only (TransferOptions::alike). Thread-safe. Its arguments
/// must outlive it.
class Experiment {
public:
    Experiment(const Scenario& scenario, const TaskGraph& graph);

    /// Costs of all tasks of the graph, with the scenario's own effects, as one seed draws them.
    Costs costs(std::uint64_t seed) const { return drawn(races_, costs_, effects_of(scenario_), seed); }
    /// Makespans of all seeds (one seed if nothing is drawn), and a run of the whole graph with the median
    /// makespan; with the scenario's own effects.
    std::pair<Makespans, EngineResult> median_run() const;
    /// The rotations whose representatives are simulated; the other GPUs are each like one of these. None: all are
    /// simulated.
    std::optional<Rotations> rotations() const;
    int simulated_gpus() const;
    /// Median over the seeds.
    Seconds makespan(const Effects& effects) const;
    RunEnds ends(const Effects& effects, std::uint64_t seed) const;
    /// The makespan with the cost of each class of tasks changed.
    Seconds makespan(const Effects& effects, std::uint64_t seed,
                     const std::function<void(const Task&, Cost&)>& change) const;
    /// Time of transfers and reductions alone.
    Seconds communication(Effects effects, std::uint64_t seed) const;
    /// Time of computation alone, with whole operators, on the GPU with most of it.
    Seconds computation(const Effects& effects) const;
    /// The least times of the graph that is simulated.
    LeastTimes least_times() const;
    /// Whether no transfer and no reduction waits for computation. Without contention and launches they then
    /// end as they do alone, because they share nothing with computation.
    bool communication_is_free() const;
    /// Whether the scenario has several seeds, and its own costs leave an order unspecified or its GEMMs race copies.
    bool several_orders() const {
        return scenario_.settings.seeds > 1 && (races_.open() || several_orders(costs_));
    }
    const Pricer& pricer() const { return pricer_; }

private:
    Costs price(const Effects& effects) const { return pricer_.price(effects); }
    /// Nothing races where launches take no time or compute units are not shared.
    static bool may_race(const Effects& effects) { return effects.launch && effects.contention; }
    static Costs drawn(const Races& races, Costs costs, const Effects& effects, std::uint64_t seed) {
        return may_race(effects) ? races.drawn(std::move(costs), seed) : costs;
    }
    Costs price(const Effects& effects, std::uint64_t seed) const {
        return drawn(simulated_races_, price(effects), effects, seed);
    }
    bool several_orders(CostView costs) const;
    EngineResult run(CostView costs, std::uint64_t seed) const;
    /// Makespans of all seeds; of one if nothing is drawn. `results`: by seed, unless null.
    Makespans makespans(const Effects& effects, std::vector<EngineResult>* results = nullptr) const;
    Seconds end_of_communication(const EngineResult& result) const;

    const Scenario& scenario_;
    CostModels models_;
    Costs costs_;
    Races races_, simulated_races_;        ///< of the whole graph, and of what is simulated
    std::optional<ResourceTable> pooled_;  ///< of a graph of representatives only
    std::optional<Quotient> quotient_;
    const TaskGraph& graph_;          ///< what is simulated: the quotient's, or the whole
    const ResourceTable& resources_;  ///< likewise
    std::unique_ptr<Engine> engine_;
    Pricer pricer_;
};

}  // namespace overlap
