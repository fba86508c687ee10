#include "sim/calibrate/problems/beside_chains.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "sim/calibrate/problems/problems.hpp"
#include "sim/core/median.hpp"
#include "sim/engine/engine.hpp"
#include "sim/pricing/effects.hpp"

namespace overlap {
namespace {

const std::vector<std::string> kinds{"dma_in", "dma_in_memcpy",  "dma_out", "dma_push", "local_dma",
                                     "cu_in",  "local_dma_rows", "cu_out",  "cu_push",  "local_cu"};
const std::array<std::string, 2> priorities{"normal", "high"}, works{"gemm", "local_copy"},
    sizes{"equal", "spread"};
const Bytes local_work(256.0 * (1 << 20));
const Seconds head_start = microseconds(100);
constexpr double window_us = 2000;  // the microbenchmark takes 5000, with the same pattern
constexpr double long_window_us = 5000;
constexpr int event_streams = 1000;
constexpr int least_runs = 3, most_runs = 150, trial_runs = 4, work_runs = 4, long_work_runs = 8,
              late_gemms = 6;
/// Copies go on for as long as so many GEMMs take, at least: the second GEMM must end beside them, and copies of spread
/// sizes have three quarters of `size` on average.
constexpr double least_gemms = 3;
/// Seeds: orders of copies that a machine leaves open. With many copies at once there are more orders.
constexpr std::uint64_t few_seeds = 2, many_seeds = 7;
/// Repeats with copies of spread sizes: each goes on in the list of sizes where the one before ended. The
/// microbenchmark makes nine.
constexpr int sections = 3;
/// GEMM times relative to the mean GPU, within their standard deviation over GPUs (1.2 %, "GPU speeds" of the
/// H200's calibration). With a smaller spread, chains of GEMMs and waiting kernels lock to each other.
constexpr std::array gemm_times{0.988, 1.0, 1.012};

/// Tasks in order on one stream.
using Lane = std::vector<TaskId>;

/// Size of copy `number`, from 0, of a stream. Spread: evenly over half to all of `size` in steps of the golden ratio, and
/// multiples of 4096. Equal copies would lock into a rhythm with equal GEMMs beside them.
Bytes size_of(const Beside& beside, int number) {
    if (!beside.spread_sizes) return beside.size;
    constexpr double golden = 0.6180339887498949, page = 4096;
    const double steps = number * golden, pages = std::floor(beside.size.si() / page);
    return Bytes(std::ceil(pages * (1 - (steps - std::floor(steps)) / 2)) * page);
}

/// A graph with a cost for every task.
class Run {
public:
    Run(const Beside& beside, const Machine& machine) : beside_(beside), machine_(machine) {}

    Lane add_work(int gpu, int count, Seconds delay = {}) {
        Lane lane;
        wait(gpu, compute_stream, delay);
        for (int i = 0; i < count; ++i) lane.push_back(add({beside_.work, gpu, compute_stream}));
        return lane;
    }
    /// Adds the copies of one GPU, the first with number `first`: one lane for each peer.
    std::vector<Lane> add_copies(int gpu, int first, int count, Seconds delay = {}) {
        std::vector<Lane> lanes;
        for (int step = beside_.local() ? 0 : 1; step <= (beside_.local() ? 0 : beside_.peers); ++step) {
            const int peer = (gpu + step) % (beside_.peers + 1);
            Lane& lane = lanes.emplace_back();
            for (int i = 0; i < count; ++i) {
                const Bytes size = size_of(beside_, first + i);
                Task task = copy(gpu, peer, size);
                task.stream = 100 + 10 * gpu + step;
                task.priority = beside_.high_priority ? 1 : 0;
                if (i == 0) wait(task.gpu, task.stream, delay);
                if (beside_.by_dma() && !beside_.kind.ends_with("push") && i > 0)
                    lane.push_back(add(task, {add_event(task, lane.back())}));
                else
                    lane.push_back(add(task));
                shares_.back() = size / beside_.size;
            }
        }
        return lanes;
    }
    /// GEMMs take `gemm_time` times their time on the mean GPU.
    void simulate(std::uint64_t seed, double gemm_time = 1) {
        // Cost models cache GEMMs, and rows are predicted in several threads.
        thread_local const CostModels models;
        if (costs_.empty()) {
            costs_ = CostView(price(graph_, Workload(), machine_, models, Effects())).each();
            for (TaskId task = 0; task < graph_.size(); ++task) adapt(task);
        }
        std::vector<Cost> costs = costs_;
        for (TaskId task = 0; task < graph_.size(); ++task)
            if (graph_[task].kind() == TaskKind::gemm) stretch(costs[task], gemm_time);
        times_ = make_engine("flow")->run(graph_, costs, machine_.resources, seed).tasks;
    }
    double end(TaskId task) const { return to_microseconds(times_[task].end); }
    /// The share of `size` that a copy has; 1 for others.
    double share(TaskId task) const { return shares_[task]; }

private:
    TaskId add(const Task& task, std::vector<TaskId> after = {}) {
        shares_.push_back(1);
        return graph_.add(task, std::move(after));
    }
    // The benchmark records an event after every operation. After a pull the event holds the stream
    // until the pull's end is seen.
    TaskId add_event(Task copy, TaskId after) {
        copy.stream += event_streams;
        const TaskId event = add(copy, {after});
        is_event_.resize(event + 1);
        is_event_[event] = true;
        return event;
    }
    void wait(int gpu, int stream, Seconds delay) {
        if (delay == Seconds()) return;
        add({MemoryBoundWork{.read = {}, .written = {}, .time = delay, .in_this_run = true, .gap = Seconds()},
             gpu, stream});
    }
    Task copy(int gpu, int peer, Bytes size) const {
        if (beside_.local()) return {LocalCopyWork{size, size, beside_.blocks, beside_.blocks == 0}, gpu, 0};
        const bool out = beside_.kind.ends_with("out"), push = beside_.kind.ends_with("push");
        const bool leaves = out || push;
        return {CopyWork{leaves ? gpu : peer, leaves ? peer : gpu, size, size,
                         beside_.by_dma() ? Agent::dma : Agent::cu, push ? Direction::push : Direction::pull,
                         beside_.blocks},
                out ? peer : gpu, 0};
    }
    static void stretch(Cost& cost, double factor) {
        cost.body = cost.body * factor;
        for (Demand& demand : cost.demands) demand.amount *= factor;
    }
    // Sets what tasks of schedules lack: fewer units, events.
    void adapt(TaskId task) {
        Cost& cost = costs_[task];
        const Task& is = graph_[task];
        const ResourceId units = machine_.resources.compute_units(is.gpu);
        cost.awaited = cost.claim && cost.claim->resource == units;  // by the event after every kernel
        if (task < is_event_.size() && is_event_[task]) {
            cost = Cost{};
        } else if (is.kind() == TaskKind::gemm && beside_.work_units > 0 && cost.claim) {
            // The GEMM leaves units to kernels beside it, which take none of its own.
            cost.claim->most = std::min(cost.claim->most, beside_.work_units);
            if (auto* tiles = std::get_if<Tiles>(&cost.claim->parts))
                tiles->waves = (tiles->count + beside_.work_units - 1) / beside_.work_units;
        }
        if (std::holds_alternative<LocalCopyWork>(beside_.work) && beside_.own_kernels()) run_together(task);
    }
    // Kernels that copy within a GPU with one block per unit leave room for blocks of other kernels on the
    // unit. Memory serves the loads of all blocks equally.
    void run_together(TaskId task) {
        Cost& cost = costs_[task];
        const Task& is = graph_[task];
        const auto* copy = std::get_if<CopyWork>(&is.work);
        const double blocks = copy != nullptr ? beside_.blocks : machine_.topology.device().compute_units;
        for (Demand& demand : cost.demands)
            if (machine_.resources[demand.resource].kind == ResourceKind::hbm)
                demand.weight = blocks * (copy != nullptr ? 1 : 2);  // one load; one load and one store
        cost.claim.reset();
    }

    const Beside& beside_;
    const Machine& machine_;
    TaskGraph graph_;
    std::vector<double> shares_;
    std::vector<bool> is_event_;
    std::vector<Cost> costs_;
    std::vector<TaskTimes> times_;
};

/// Times of tasks in µs, and the sum of their sizes as shares of `size`.
struct Durations {
    std::vector<double> us;
    double shares = 0;
    /// Mean time for `size`; 0 if there are none.
    double mean() const { return us.empty() ? 0 : std::accumulate(us.begin(), us.end(), 0.0) / shares; }
};

/// Durations of the lane's tasks that ran between `from` and `to`, without the lane's first task.
void add_whole(const Run& run, const Lane& lane, double from, double to, Durations& durations) {
    for (std::size_t i = 1; i < lane.size(); ++i)
        if (run.end(lane[i - 1]) >= from && run.end(lane[i]) <= to) {
            durations.us.push_back(run.end(lane[i]) - run.end(lane[i - 1]));
            durations.shares += run.share(lane[i]);
        }
}

int gpus_with_work(const Beside& beside) {
    return beside.everywhere ? beside.peers + 1 : 1;
}

std::uint64_t seeds_of(const Beside& beside) {
    return beside.everywhere && beside.by_dma() ? many_seeds : few_seeds;
}

/// `machine`, or a copy in `own` whose GEMMs have `work_units`.
const Machine& machine_for(const Beside& beside, const Machine& machine, std::optional<Machine>& own) {
    if (beside.work_units == 0) return machine;
    own = machine;
    for (auto& [dtype, parameters] : own->calibration.gemm) {
        const double share = std::min(1.0, beside.work_units / parameters.compute_units);
        parameters.compute_units = parameters.compute_units * share;
        parameters.peak_rate = parameters.peak_rate * share;
    }
    return *own;
}

/// Median time between ends of GPU 0's lanes when they run alone.
double alone(const Beside& beside, const Machine& machine, bool copies, int count) {
    Run run(beside, machine);
    std::vector<Lane> first;
    for (int gpu = 0; gpu < gpus_with_work(beside); ++gpu) {
        const auto lanes =
            copies ? run.add_copies(gpu, 0, count) : std::vector<Lane>{run.add_work(gpu, count)};
        if (gpu == 0) first = lanes;
    }
    Durations durations;
    for (std::uint64_t seed = 0; seed < (copies ? seeds_of(beside) : 1); ++seed) {
        run.simulate(seed);
        for (const Lane& lane : first) add_whole(run, lane, 0, run.end(lane.back()), durations);
    }
    return copies && beside.spread_sizes ? durations.mean() : median(durations.us);
}

int runs_for(double window, double each) {
    return std::clamp(static_cast<int>(std::ceil(window / each)), least_runs, most_runs);
}

}  // namespace

std::string Beside::work_name() const {
    const auto* gemm = std::get_if<GemmShape>(&work);
    if (gemm == nullptr) return "local copy";
    return "GEMM " + shape_name(*gemm);
}

std::string Beside::name() const {
    std::string text =
        work_name() + " beside " + kind + " " + std::to_string(peers) + " peers " + size_name(size);
    if (spread_sizes) text += " and less";
    if (blocks > 0) text += " " + std::to_string(blocks) + " blocks";
    if (work_units > 0) text += " on " + std::to_string(work_units) + " units";
    if (high_priority) text += " high priority";
    if (everywhere) text += " everywhere";
    return first == "both" ? text : text + " " + first + " first";
}

Beside read_beside(ConfigObject& line) {
    Beside beside;
    const bool local = line.has("work") && line.choice("work", works) == 1;
    if (local)
        beside.work = LocalCopyWork{local_work, local_work};
    else
        beside.work = GemmShape{line.integer("m", 1, most_in_a_case), line.integer("n", 1, most_in_a_case),
                                line.integer("k", 1, most_in_a_case), DType::bf16};
    beside.work_units = static_cast<int>(line.integer("units", 0, most_in_a_case));
    beside.kind = kinds.at(line.choice("beside", kinds));
    if (line.has("peers")) beside.peers = static_cast<int>(line.integer("peers", 1, most_in_a_case));
    beside.blocks = static_cast<int>(line.integer("blocks", 0, most_in_a_case));
    beside.size = Bytes(line.number("size", positive));
    beside.high_priority = line.choice("priority", priorities) == 1;
    if (line.has("everywhere")) beside.everywhere = line.text("everywhere") == "1";
    if (line.has("first")) beside.first = line.text("first");
    if (line.has("sizes")) beside.spread_sizes = line.choice("sizes", sizes) == 1;
    return beside;
}

BesideTimes predict_beside(const Beside& beside, const Machine& whole) {
    std::optional<Machine> own;
    const Machine& machine = machine_for(beside, whole, own);
    BesideTimes times;
    times.work_alone = alone(beside, machine, false, trial_runs);
    const double window = beside.waits() ? std::max(long_window_us, long_work_runs * times.work_alone)
                                         : std::max(window_us, work_runs * times.work_alone);
    const double each_copy = alone(beside, machine, true, trial_runs);
    const int copy_runs = std::max(runs_for(window, each_copy),
                                   static_cast<int>(std::ceil(least_gemms * times.work_alone / each_copy)));
    times.copy_alone = alone(beside, machine, true, copy_runs);

    const Seconds copies_wait = beside.first == "gemm" ? head_start : Seconds(),
                  work_waits = beside.first == "copy" ? head_start : Seconds();
    Durations work_us, copy_us;
    const std::uint64_t runs = beside.waits() ? gemm_times.size() : seeds_of(beside);
    for (int section = 0; section < (beside.spread_sizes ? sections : 1); ++section) {
        Run run(beside, machine);
        Lane work;
        std::vector<Lane> copies;
        for (int gpu = 0; gpu < gpus_with_work(beside); ++gpu) {
            const Lane worker = run.add_work(gpu, runs_for(window, times.work_alone), work_waits);
            const std::vector<Lane> copiers =
                run.add_copies(gpu, section * copy_runs, copy_runs, copies_wait);
            if (gpu == 0) work = worker, copies = copiers;
        }
        for (std::uint64_t seed = 0; seed < runs; ++seed) {
            run.simulate(seed, beside.waits() ? gemm_times.at(seed) : 1.0);
            double to = run.end(work.back());
            for (const Lane& lane : copies) to = std::min(to, run.end(lane.back()));
            const double from = to_microseconds(std::max(copies_wait, work_waits));
            add_whole(run, work, from, to, work_us);
            for (const Lane& lane : copies) add_whole(run, lane, from, to, copy_us);
        }
    }
    times.work = beside.waits() ? work_us.mean() : median(work_us.us);
    times.copy = beside.waits() || beside.spread_sizes ? copy_us.mean() : median(copy_us.us);
    return times;
}

double predict_late(const Beside& beside, Seconds wait, double more, const Machine& whole) {
    std::optional<Machine> own;
    const Machine& machine = machine_for(beside, whole, own);
    const Seconds ready = wait + more * microseconds(alone(beside, machine, false, trial_runs));
    Run run(beside, machine);
    run.add_work(0, late_gemms);
    const Lane copy = run.add_copies(0, 0, 1, ready).front();
    run.simulate(0);
    return run.end(copy.front()) - to_microseconds(ready);
}

}  // namespace overlap
