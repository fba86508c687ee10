#include "sim/run/run.hpp"

#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "sim/confidence/makespan_error.hpp"
#include "sim/core/interruption.hpp"
#include "sim/run/baseline.hpp"
#include "sim/run/experiment.hpp"
#include "sim/run/observe.hpp"
#include "sim/run/planned.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/steady.hpp"
#include "sim/schedules/staging.hpp"

namespace overlap {
namespace {

/// The independent simulations of one run.
class Jobs {
public:
    /// `share_cores`: the jobs run in parallel, until wait().
    explicit Jobs(bool share_cores) {
        if (share_cores) group_.emplace();
        if (outer_ == nullptr) call_has_ended = &ended_;
    }
    ~Jobs() {
        wait();
        call_has_ended = outer_;
    }
    Jobs(const Jobs&) = delete;
    Jobs& operator=(const Jobs&) = delete;

    template <class Work>
    auto start(Work work) -> std::future<decltype(work())> {
        const auto job = std::make_shared<std::packaged_task<decltype(work())()>>(std::move(work));
        if (group_)
            group_->run([job, ended = call_has_ended] {
                const auto before = std::exchange(call_has_ended, ended);
                (*job)();
                call_has_ended = before;
            });
        else
            (*job)();
        return job->get_future();
    }
    /// Works on jobs until all are done.
    void wait() {
        if (group_) group_->wait();
    }

private:
    std::optional<tbb::task_group> group_;
    std::atomic<bool>* const outer_ = call_has_ended;
    std::atomic<bool> ended_{false};  ///< by Ctrl-C, in any of the threads
};

/// Whether a run has enough simulations to share the cores: of each seed, and at most `others` for baseline and losses.
bool shares_cores(const Scenario& scenario, const TaskGraph& graph, const Experiment& own) {
    constexpr std::uint64_t others = 8;
    const auto seeds = static_cast<std::uint64_t>(own.several_orders() ? scenario.settings.seeds : 1);
    return scenario.settings.engine == default_engine && (seeds + others) * graph.size() >= worth_all_cores;
}

// Switches effects off one after another, so the differences add up in any order. The remaining loss is that
// of the pipeline itself: idle links, fill and drain.
class Attribution {
public:
    Attribution(Jobs& jobs, const Experiment& own, Effects effects, std::uint64_t seed) {
        const auto without = [&](bool& effect, bool matters) {
            const bool had = std::exchange(effect, false);
            steps_.push_back(had && matters
                                 ? jobs.start([&own, effects, seed] { return own.ends(effects, seed); })
                                 : std::future<RunEnds>());
        };
        without(effects.host, own.pricer().has_host());
        without(effects.contention, true);
        without(effects.launch, true);
        without(effects.packing, own.pricer().has_packing());
        without(effects.decomposition, own.pricer().has_decomposition());
        const bool any_step = std::ranges::any_of(steps_, &std::future<RunEnds>::valid);
        if (!any_step || !own.communication_is_free())
            communication_ = jobs.start([&own, effects, seed] { return own.communication(effects, seed); });
    }

    Losses losses(Seconds makespan, Seconds least_computation, Seconds ideal) {
        Losses losses;
        Seconds before = makespan;
        RunEnds last;
        const std::array parts{&losses.host, &losses.contention, &losses.launch, &losses.packing,
                               &losses.decomposition};
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (!steps_[i].valid()) continue;
            last = steps_[i].get();
            *parts[i] = before - last.all;
            before = last.all;
        }
        const Seconds communication = communication_.valid() ? communication_.get() : last.communication;
        // Transfers that wait for their pieces may conflict less than all transfers at once.
        const Seconds steady = std::min(before, std::max({least_computation, communication, ideal}));
        losses.fill_drain = before - steady;
        losses.pattern = steady - ideal;
        return losses;
    }

private:
    std::vector<std::future<RunEnds>> steps_;  ///< invalid if the run is the same as another
    std::future<Seconds> communication_;       ///< invalid if the last step shows it
};

std::string scenario_line(const Scenario& scenario) {
    const Topology& topology = scenario.machine->topology;
    std::string line = scenario.workload.name + ": ";
    if (!scenario.has_workload())
        line += std::to_string(scenario.plan->graph.size()) + " tasks";
    else if (const Pair* pair = scenario.workload.pair())
        line +=
            scenario.workload.form() + ", GEMM " + shape_name(pair->gemm) + " " + name_of(pair->gemm.dtype);
    else
        line +=
            std::to_string(std::get<std::vector<Operator>>(scenario.workload.content).size()) + " operators";
    return line + (scenario.has_workload() ? " a GPU, " : ", ") + std::to_string(topology.gpus()) + " x " +
           topology.device().name;
}

/// `run`: makespan and seed.
Confidence confidence_in(const Scenario& scenario, const TaskGraph& graph, const Experiment& experiment,
                         const Makespans::value_type& run, bool overlapped) {
    const auto [makespan, seed] = run;
    const PricedRun priced{
        graph,      *scenario.machine,           scenario.settings.cost_models,  scenario.host.get(),
        overlapped, scenario.needs_own_kernel(), scenario.repeat == Repeat::once};
    return confidence_of(priced, period_of(scenario, graph, makespan), [&](const Lengthened& factors) {
        const Seconds changed = experiment.makespan(
            effects_of(scenario), seed, [&](const Task& task, Cost& cost) { scale(cost, factors.of(task)); });
        return period_of(scenario, graph, changed, factors.host);
    });
}

}  // namespace

Prediction predict(const Scenario& given, bool judged) {
    const TaskGraph graph = given.graph();
    const Scenario scenario = settled(given, graph);
    const Experiment own(scenario, graph);
    const auto [makespans, simulated] = own.median_run();
    const std::uint64_t seed = quantile(makespans, 0.5).second;
    const auto period = [&](Seconds makespan) { return period_of(scenario, graph, makespan); };
    return {period(simulated.makespan),
            period(quantile(makespans, 0.1).first),
            period(quantile(makespans, 0.9).first),
            makespans.size(),
            named(timeline_of(graph, own.costs(seed), simulated), scenario, graph),
            judged ? confidence_in(scenario, graph, own, {simulated.makespan, seed}, true) : Confidence()};
}

Seconds makespan_of(const Scenario& given) {
    const TaskGraph graph = given.graph();
    const Scenario scenario = settled(given, graph);
    return period_of(scenario, graph, Experiment(scenario, graph).makespan(effects_of(scenario)));
}

namespace {

/// The least times of the scenario's tasks, in any order.
LeastTimes least_of(const Scenario& scenario, const Experiment& own) {
    if (!scenario.runs_in_sequence()) return own.least_times();
    const TaskGraph by_data = scenario.graph_by_data();
    return Experiment(scenario, by_data).least_times();
}

RunResult run_whole(bool share_cores, const Scenario& scenario, const RunOptions& options, TaskGraph& graph,
                    const Experiment& own) {
    const Effects effects = effects_of(scenario);
    Jobs jobs(share_cores);
    auto serial_job = jobs.start([&] {
        return options.baselines != nullptr ? options.baselines->own(scenario) : own_serial(scenario);
    });
    auto fastest_job = jobs.start([&] {
        return options.baselines != nullptr ? options.baselines->fastest(scenario) : fastest_serial(scenario);
    });
    std::future<Seconds> own_communication;
    std::optional<Attribution> attribution;
    const auto look_into = [&](std::uint64_t seed) {
        own_communication = jobs.start([&own, effects, seed] { return own.communication(effects, seed); });
        attribution.emplace(jobs, own, effects, seed);
    };
    if (!own.several_orders()) look_into(0);

    const Scenario steady = settled(scenario, graph);
    std::optional<Experiment> slowed;
    if (steady.steady) slowed.emplace(steady, graph);
    const Experiment& repeated = slowed ? *slowed : own;
    const auto [makespans, simulated] = repeated.median_run();
    const std::uint64_t seed = quantile(makespans, 0.5).second;
    const Costs costs = repeated.costs(seed);
    if (!attribution) look_into(seed);
    const std::optional<Rotations>& alike = scenario.params.transfers.alike;
    RunResult result;
    observe(graph, costs, simulated, *steady.machine, alike, repeated.rotations(), result);
    jobs.wait();
    const Baseline own_way = serial_job.get(), fastest = fastest_job.get();
    const Baseline& baseline = own_way.makespan < fastest.makespan ? own_way : fastest;
    result.config = scenario.config();
    result.scenario = scenario_line(scenario);
    const auto period = [&](Seconds makespan) { return period_of(scenario, graph, makespan); };
    result.makespan = period(simulated.makespan);
    result.range.p10 = period(quantile(makespans, 0.1).first);
    result.range.p90 = period(quantile(makespans, 0.9).first);
    result.simulation.seeds = makespans.size();
    result.phases.serial = own_way.makespan;
    result.phases.gemm = own_way.computation;
    result.phases.comm = own_communication.get();
    const LeastTimes least = least_of(scenario, own);
    const Seconds least_communication =
        std::min({least.communication, own_way.least.communication, fastest.least.communication});
    const Seconds chain = std::min({least.chain, own_way.least.chain, fastest.least.chain});
    result.ideal = std::max({least.computation, least_communication, chain});
    compare_with(baseline.name, baseline.makespan, result);
    // With nothing to overlap (one GPU, one empty side), overlap efficiency is undefined.
    if (std::min(least.computation, least_communication) == Seconds())
        result.baseline.overlap_efficiency.reset();
    const Seconds cool = steady.steady ? own.ends(effects, seed).all : simulated.makespan;
    result.losses = attribution->losses(cool, least.computation, result.ideal);
    result.losses.power = simulated.makespan - cool;
    result.losses.host += result.makespan - simulated.makespan;
    result.steady = steady.steady;
    result.simulation.tasks = graph.size() * static_cast<std::size_t>(alike ? alike->of_orbit() : 1);
    result.own_kernel = scenario.needs_own_kernel();
    result.simulation.engine = scenario.settings.engine;
    result.simulation.simulated_gpus = own.simulated_gpus();
    result.simulation.gpus = scenario.machine->topology.gpus();
    result.simulation.wall_ms = simulated.wall_ms;
    result.used.staging = staging_bytes(graph, *scenario.schedule, scenario.workload,
                                        scenario.machine->topology, scenario.params, scenario.pairs);
    // One after another, all of the communication is exposed, but for gaps between its transfers.
    const bool overlapped = result.phases.exposed_comm < 0.99 * result.phases.comm;
    result.confidence = confidence_in(scenario, graph, repeated, {simulated.makespan, seed}, overlapped);
    if (options.record) {
        record(std::move(graph), costs, simulated, scenario.machine->resources, result);
        result.observed.timeline =
            named(std::move(result.observed.timeline), scenario, result.observed.recording->graph);
    }
    return result;
}

}  // namespace

void compare_with(const std::string& name, Seconds makespan, RunResult& result) {
    constexpr double least_gain = 1e-6;  // less is rounding
    result.baseline.time = makespan;
    result.baseline.name = name;
    // An empty workload takes no time with or without overlap.
    result.baseline.speedup = result.makespan > Seconds() ? makespan / result.makespan : 1.0;
    const double ideal = result.ideal > Seconds() ? makespan / result.ideal : 1.0;
    result.baseline.overlap_efficiency.reset();
    if (ideal > 1 + least_gain)
        result.baseline.overlap_efficiency = (result.baseline.speedup - 1) / (ideal - 1);
}

RunResult run(const Scenario& scenario, const RunOptions& options) {
    TaskGraph graph = scenario.graph();
    const Experiment own(scenario, graph);
    if (!shares_cores(scenario, graph, own)) return run_whole(false, scenario, options, graph, own);
    // A thread that waits for jobs of this run takes up no other run, such as the next point of a sweep.
    return tbb::this_task_arena::isolate([&] { return run_whole(true, scenario, options, graph, own); });
}

}  // namespace overlap
