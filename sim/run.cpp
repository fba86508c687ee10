#include "sim/run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <semaphore>
#include <thread>

#include "sim/observe.hpp"

namespace overlap {
namespace {

/// The nearest-rank quantile of sorted values.
template <class Value>
const Value& quantile(const std::vector<Value>& sorted, double share) {
    const auto rank = std::ceil(share * static_cast<double>(sorted.size()));
    return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

/// One graph under one set of effects; the parts that the counterfactual runs share.
class Experiment {
public:
    Experiment(const Scenario& scenario, const TaskGraph& graph)
        : scenario_(scenario), graph_(graph), engine_(make_engine(scenario.engine)) {}

    std::vector<Cost> price(const Effects& effects) const {
        return overlap::price(graph_, scenario_.workload, *scenario_.machine,
                              CostModels(scenario_.cost_models), effects);
    }
    EngineResult run(std::span<const Cost> costs, std::uint64_t seed) const {
        return engine_->run(graph_, costs, scenario_.machine->resources, seed);
    }
    /// Makespans with their seeds, the shortest first.
    std::vector<std::pair<Seconds, std::uint64_t>> makespans(std::span<const Cost> costs) const {
        std::vector<std::pair<Seconds, std::uint64_t>> result;
        const int seeds = several_orders(costs) ? scenario_.seeds : 1;
        for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(seeds); ++seed)
            result.emplace_back(run(costs, seed).makespan, seed);
        std::sort(result.begin(), result.end());
        return result;
    }
    /// Makespans as above, and a run with their median.
    std::pair<std::vector<std::pair<Seconds, std::uint64_t>>, EngineResult> median_run(
        std::span<const Cost> costs) const {
        if (!several_orders(costs)) {
            EngineResult only = run(costs, 0);
            return {{{only.makespan, 0}}, std::move(only)};
        }
        auto all = makespans(costs);
        return {all, run(costs, quantile(all, 0.5).second)};
    }
    Seconds makespan(const Effects& effects) const { return quantile(makespans(price(effects)), 0.5).first; }
    /// Transfers and reductions alone.
    Seconds communication(Effects effects) const {
        effects.computation = false;
        return makespan(effects);
    }
    /// Computation alone, each operator whole: the GPU with most of it.
    Seconds computation(const Effects& effects) const {
        std::vector<Seconds> sums(static_cast<std::size_t>(scenario_.machine->topology.gpus()));
        const std::vector<Cost> costs = price(effects);
        for (TaskId id = 0; id < graph_.size(); ++id) {
            const TaskKind kind = graph_[id].kind();
            if (kind == TaskKind::gemm || kind == TaskKind::memory_bound)
                sums[static_cast<std::size_t>(graph_[id].gpu)] +=
                    isolated_time(costs[id], scenario_.machine->resources);
        }
        return *std::max_element(sums.begin(), sums.end());
    }

private:
    bool several_orders(std::span<const Cost> costs) const {
        const ResourceTable& resources = scenario_.machine->resources;
        return std::any_of(costs.begin(), costs.end(), [&](const Cost& cost) {
            return cost.claim && !cost.claim->as_enqueued &&
                   resources[cost.claim->resource].order == QueueOrder::unspecified;
        });
    }

    const Scenario& scenario_;
    const TaskGraph& graph_;
    std::unique_ptr<Engine> engine_;
};

TaskGraph serial_graph(const Scenario& scenario) {
    ScheduleParams params = scenario.params;
    params.transfers.single_stream = false;
    params.chunks = 1;
    return find_schedule("serial").make()->build(scenario.workload, scenario.machine->topology, params);
}

/// The simulations of one run, which need nothing of each other: side by side on the cores where they are
/// large.
class Jobs {
public:
    Jobs(const Scenario& scenario, const TaskGraph& graph)
        : policy_(graph.size() >= worth_a_thread && scenario.engine == default_engine
                      ? std::launch::async
                      : std::launch::deferred),
          cores_(std::max(1U, std::thread::hardware_concurrency())) {}

    template <class Work>
    std::future<Seconds> start(Work work) {
        return std::async(policy_, [this, work] {
            const Core core(cores_);
            return work();
        });
    }

private:
    /// One of the cores, so that there is memory in use for no more simulations than that.
    struct Core {
        explicit Core(std::counting_semaphore<>& cores) : cores(cores) { cores.acquire(); }
        ~Core() { cores.release(); }
        Core(const Core&) = delete;
        Core& operator=(const Core&) = delete;
        std::counting_semaphore<>& cores;
    };
    static constexpr std::size_t worth_a_thread = 20'000;
    std::launch policy_;
    std::counting_semaphore<> cores_;
};

// Effects are switched off one after another, so the differences add up whatever the order of magnitude of
// each. What is left without any of them is the pipeline itself: idle links, fill and drain.
class Attribution {
public:
    Attribution(Jobs& jobs, const Experiment& own, const Experiment& serial, Effects effects) {
        const auto without = [&](bool& effect) {
            const bool had = std::exchange(effect, false);
            steps_.push_back(had ? jobs.start([&own, effects] { return own.makespan(effects); })
                                 : std::future<Seconds>());
        };
        without(effects.contention);
        without(effects.launch);
        without(effects.packing);
        without(effects.decomposition);
        computation_ = jobs.start([&serial, effects] { return serial.computation(effects); });
        communication_ = jobs.start([&own, effects] { return own.communication(effects); });
        best_communication_ = jobs.start([&serial, effects] { return serial.communication(effects); });
    }

    Losses losses(Seconds makespan, Seconds ideal) {
        Losses losses;
        Seconds before = makespan;
        const std::array parts{&losses.contention, &losses.launch, &losses.packing, &losses.decomposition};
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (!steps_[i].valid()) continue;
            const Seconds after = steps_[i].get();
            *parts[i] = before - after;
            before = after;
        }
        const Seconds computation = computation_.get();
        const Seconds steady = std::max(computation, communication_.get());
        const Seconds best_pattern = std::max(computation, best_communication_.get());
        losses.fill_drain = before - steady;
        losses.pattern = steady - best_pattern;
        losses.unattributed = best_pattern - ideal;
        return losses;
    }

private:
    std::vector<std::future<Seconds>> steps_;  ///< invalid where the effect was off already
    std::future<Seconds> computation_, communication_, best_communication_;
};

std::string scenario_line(const Scenario& scenario) {
    const Topology& topology = scenario.machine->topology;
    std::string line = scenario.workload.name + ": ";
    if (const Pair* pair = scenario.workload.pair())
        line += scenario.workload.form() + ", GEMM " + std::to_string(pair->gemm.m) + "x" +
                std::to_string(pair->gemm.n) + "x" + std::to_string(pair->gemm.k) + " " +
                name_of(pair->gemm.dtype);
    else
        line +=
            std::to_string(std::get<std::vector<Operator>>(scenario.workload.content).size()) + " operators";
    return line + " a GPU, " + std::to_string(topology.gpus()) + " x " + topology.device().name;
}

}  // namespace

Prediction predict(const Scenario& scenario) {
    const TaskGraph graph = scenario.graph();
    const Experiment own(scenario, graph);
    const auto [makespans, simulated] = own.median_run(own.price(without(scenario.without)));
    return {simulated.makespan, quantile(makespans, 0.1).first, quantile(makespans, 0.9).first,
            makespans.size(), timeline_of(graph, simulated)};
}

RunResult run(const Scenario& scenario) {
    const Effects effects = without(scenario.without);
    const TaskGraph graph = scenario.graph();
    const TaskGraph baseline = serial_graph(scenario);
    const Experiment own(scenario, graph);
    const Experiment serial(scenario, baseline);

    Jobs jobs(scenario, graph);
    auto serial_makespan = jobs.start([&] { return serial.makespan(effects); });
    auto own_communication = jobs.start([&] { return own.communication(effects); });
    auto serial_communication = jobs.start([&] { return serial.communication(effects); });
    Attribution attribution(jobs, own, serial, effects);

    const std::vector<Cost> costs = own.price(effects);
    auto [makespans, simulated] = own.median_run(costs);
    RunResult result;
    result.config = scenario.config();
    result.scenario = scenario_line(scenario);
    result.makespan = simulated.makespan;
    result.makespan_p10 = quantile(makespans, 0.1).first;
    result.makespan_p90 = quantile(makespans, 0.9).first;
    result.seeds = makespans.size();
    result.serial = serial_makespan.get();
    result.gemm = serial.computation(effects);
    result.comm = own_communication.get();
    result.ideal = std::max(result.gemm, serial_communication.get());
    // Nothing to do takes no time with or without overlap.
    result.speedup = result.makespan.si() > 0 ? result.serial / result.makespan : 1.0;
    // Without anything to gain (one GPU, or nothing to overlap) the share of the gain has no meaning.
    const double ideal_speedup = result.ideal.si() > 0 ? result.serial / result.ideal : 1.0;
    if (ideal_speedup > 1.0 + 1e-9)
        result.overlap_efficiency = (result.speedup - 1.0) / (ideal_speedup - 1.0);
    result.losses = attribution.losses(result.makespan, result.ideal);
    result.tasks = graph.size();
    result.engine = scenario.engine;
    result.wall_ms = simulated.wall_ms;
    observe(graph, costs, simulated, scenario.machine->resources, result);
    return result;
}

}  // namespace overlap
