#include "sim/run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <semaphore>
#include <thread>

#include "models/gemm_model.hpp"
#include "sim/observe.hpp"
#include "sim/schedules/staging.hpp"

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
        return overlap::price(graph_, scenario_.workload, scenario_.machine,
                              CostModels(scenario_.cost_models), effects);
    }
    EngineResult run(std::span<const Cost> costs, std::uint64_t seed) const {
        return engine_->run(graph_, costs, scenario_.machine.resources, seed);
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
        std::vector<Seconds> sums(static_cast<std::size_t>(scenario_.machine.topology.gpus()));
        const std::vector<Cost> costs = price(effects);
        for (TaskId id = 0; id < graph_.size(); ++id) {
            const TaskKind kind = graph_[id].kind();
            if (kind == TaskKind::gemm || kind == TaskKind::memory_bound)
                sums[static_cast<std::size_t>(graph_[id].gpu)] +=
                    isolated_time(costs[id], scenario_.machine.resources);
        }
        return *std::max_element(sums.begin(), sums.end());
    }

private:
    bool several_orders(std::span<const Cost> costs) const {
        const ResourceTable& resources = scenario_.machine.resources;
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
    return find_schedule("serial").make()->build(scenario.workload, scenario.machine.topology, params);
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

/// How long the GEMMs of a workload keep a GPU busy, whole and one after another: parts of them run at the
/// clock of the whole, not at that of a short kernel.
Seconds multiplying_time(const Workload& workload, const Calibration& calibration) {
    Seconds sum;
    const auto add = [&](const GemmShape& shape) {
        sum += estimate_gemm(shape, calibration.gemm_for(shape.dtype)).body;
    };
    if (const Pair* pair = workload.pair()) {
        add(pair->gemm);
    } else {
        for (const Operator& op : std::get<std::vector<Operator>>(workload.content))
            if (const auto* shape = std::get_if<GemmShape>(&op.work)) add(*shape);
    }
    return sum;
}

/// Refuses a pair whose operands could never be in the memory of one GPU.
void require_memory(const Workload& workload, const DeviceSpec& device, const std::string& origin) {
    const Pair* pair = workload.pair();
    if (pair == nullptr) return;
    const GemmShape& gemm = pair->gemm;
    const Bytes needed = matrix_size(gemm.m, gemm.k, gemm.dtype) + matrix_size(gemm.k, gemm.n, gemm.dtype) +
                         matrix_size(gemm.m, gemm.n, output_type(gemm.dtype));
    if (needed <= device.hbm_capacity) return;
    throw UserError(origin + ": /workload/gemm: the operands of " + std::to_string(gemm.m) + "x" +
                    std::to_string(gemm.n) + "x" + std::to_string(gemm.k) + " take " +
                    std::to_string(std::llround(needed.si() * 1e-9)) + " GB, but " + device.name + " has " +
                    std::to_string(std::llround(device.hbm_capacity.si() * 1e-9)) + " GB of HBM");
}

std::string scenario_line(const Scenario& scenario) {
    const Topology& topology = scenario.machine.topology;
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

RunConfig read_run_config(const Json& json, const std::string& origin) {
    ConfigObject config(json, origin);
    RunConfig result;
    result.origin = origin;
    if (config.has("schema")) config.integer("schema", 1, 1);
    if (config.has("topology")) result.topology = config.text("topology");
    if (config.has("schedule")) result.schedule = config.text("schedule");
    if (config.has("params")) result.params = config.raw("params");
    if (config.has("workload")) {
        result.workload = config.raw("workload");
        if (!result.workload.is_string() && !result.workload.is_object())
            config.fail("workload", "is " + result.workload.dump() + ", expected a file name or an object");
    }
    if (config.has("engine")) result.engine = config.text("engine");
    if (config.has("seeds")) result.seeds = static_cast<int>(config.integer("seeds", 1, most_seeds));
    if (config.has("cost_models")) result.cost_models = config.texts("cost_models");
    if (config.has("without")) result.without = config.texts("without");
    config.finish();
    return result;
}

Scenario resolve(const RunConfig& config, const ConfigFolder& folder) {
    const auto required = [&](const std::string& value, const std::string& key, const std::string& example) {
        if (value.empty())
            throw UserError(config.origin + ": /" + key + ": is missing (for instance " + example +
                            "; see sim list)");
    };
    required(config.topology, "topology", "mi300x_8.json");
    required(config.schedule, "schedule", "ring_chunked");

    const ScheduleEntry& schedule = find_schedule(config.schedule);
    Workload workload = [&] {
        if (config.workload.is_object()) return read_workload({config.workload, config.origin, "/workload"});
        const auto path = folder.find("workloads", config.workload.get<std::string>());
        const Json json = read_json_file(path);
        return read_workload({json, path.string()});
    }();
    require_handled(schedule, workload);

    Topology topology = folder.topology(config.topology);
    const Pair* pair = workload.pair();
    const bool collective_first = pair == nullptr || pair->order != Order::gemm_first;
    ScheduleParams params = read_parameters({config.params, config.origin, "/params"}, schedule.parameters,
                                            collective_first, schedule.single_stream, topology);
    require_memory(workload, topology.device(), config.origin);
    ResourceTable resources(topology);
    Calibration calibration = folder.calibration(topology.device().name);
    make_engine(config.engine);
    CostModels{config.cost_models};
    without(config.without);
    const Seconds sustained = multiplying_time(workload, calibration);
    const bool one_order = topology.device().dma.order != QueueOrder::unspecified;
    const int seeds = config.seeds.value_or(one_order ? 1 : default_seeds);
    return {{std::move(topology), std::move(resources), std::move(calibration), sustained},
            std::move(workload),
            &schedule,
            std::move(params),
            config.engine,
            seeds,
            config.cost_models,
            config.without};
}

Json Scenario::config() const {
    return {{"schema", 1},
            {"topology", machine.topology.name() + ".json"},
            {"schedule", schedule->name},
            {"params", to_json(params, schedule->parameters)},
            {"workload", to_json(workload)},
            {"engine", engine},
            {"seeds", seeds},
            {"cost_models", cost_models},
            {"without", without}};
}

TaskGraph Scenario::graph() const {
    return schedule->make()->build(workload, machine.topology, params);
}

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
    result.staging = staging_bytes(graph, *scenario.schedule, scenario.workload, scenario.machine.topology,
                                   scenario.params);
    observe(graph, costs, simulated, scenario.machine.resources, result);
    return result;
}

}  // namespace overlap
