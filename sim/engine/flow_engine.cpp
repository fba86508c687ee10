#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>
#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "sim/core/interruption.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/fair_share.hpp"
#include "sim/engine/flow_engine.hpp"
#include "sim/engine/task_lifecycle.hpp"
#include "sim/engine/unshared_run.hpp"

namespace overlap {
namespace {

struct FlowPace {
    Femtoseconds since = 0;   ///< time at which the body had reached Body::done
    double rate = 0;          ///< since then [fraction of the body a second]
    Femtoseconds ends = 0;    ///< at this rate
    Femtoseconds queued = 0;  ///< date of its event, at most `ends`; end_of_time without one
};

class FlowSimulation : public TaskLifecycle<FlowSimulation, FlowPace> {
public:
    FlowSimulation(const TaskGraph& graph, CostView costs, Dispatcher dispatcher, FairShare shares,
                   RateObserver* observer)
        : TaskLifecycle(graph, costs, std::move(dispatcher)),
          observer_(observer),
          shares_(std::move(shares)),
          running_(costs.classes().size()),
          later_(graph.size()) {}

    std::vector<TaskTimes> run(std::uint64_t seed) {
        begin(seed);
        constexpr unsigned between_looks = 1024;
        for (unsigned step = 0; !later_.empty() || !at_once_.empty(); ++step) {
            if (step % between_looks == 0) end_if_interrupted();
            if (at_once_.empty()) now_ = later_.next_date();
            if (!later_.empty() && later_.next_date() == now_) later_.take_next(at_once_);
            std::erase_if(at_once_,
                          [this](const Event& event) { return is_void(event) || is_put_off(event); });
            if (at_once_.empty()) continue;
            instant();
            update_rates();
            later_.tidy([this](const Event& event) { return is_void(event); });
        }
        return std::move(times_);
    }

private:
    friend TaskLifecycle;

    Seconds now() const { return to_seconds(now_); }

    static Femtoseconds later(Femtoseconds date, Seconds delay) {
        return date_after(date, to_femtoseconds(delay));
    }
    Femtoseconds date(Seconds delay = {}) const { return later(now_, delay); }
    static Seconds time(Femtoseconds date) { return to_seconds(date); }

    void at(Femtoseconds date, TaskId task, EventKind kind, std::size_t detail = 0) {
        const Event event(date, task, kind, detail);
        if (date == now_) return at_once_.push_back(event);
        later_.push(event);
    }

    /// The end of a body that got slower after this event was queued is put off: the event happens later.
    bool is_put_off(const Event& event) {
        if (event.kind() != EventKind::body) return false;
        Body& body = this->body(event.task());
        if (body.ends <= now_) return false;
        body.queued = body.ends;
        later_.push({body.ends, event.task(), EventKind::body, event.detail()});
        return true;
    }

    void happens(const Event& event) const {
        if (now_ == end_of_time) fail_at_end_of_time(graph_[event.task()]);
    }

    bool run_body(TaskId task) {
        const FairShare::Index of = costs_.class_of(task);
        if (!shares_.takes_time(of)) return false;
        if (claimed<Blocks>(costs_[task]) != nullptr)
            shares_.limit(of, 1 / (costs_[task].body.si() * dispatcher_.stretch(task)));
        Body& body = this->body(task);
        body.since = body.ends = now_;
        body.queued = end_of_time;
        running_[of] = task;
        shares_.start(of);
        return true;
    }

    void halt_body(TaskId task) {
        body(task).rate = 0;
        shares_.stop(costs_.class_of(task));
        if (observer_ != nullptr) observer_->rate(now(), task, 0);
    }

    double progress(TaskId task) const {
        const Body& at = body(task);
        return at.done + at.rate * static_cast<double>(now_ - at.since) / femtoseconds_per_second;
    }

    void hold(const Hold& hold) { shares_.hold(hold); }
    void give_back(const Hold& hold) { shares_.give_back(hold); }

    void update_rates() {
        for (const FairShare::Index of : shares_.resolve()) {
            const TaskId task = running_[of];
            Body& body = this->body(task);
            body.done = progress(task);
            body.since = now_;
            body.rate = shares_.rate(of);
            if (observer_ != nullptr) observer_->rate(now(), task, body.rate);
            const double seconds = std::max(body.goal - body.done, 0.0) / body.rate;
            body.ends = date_after(now_, std::max<Femtoseconds>(to_femtoseconds(Seconds(seconds)), 1));
            if (body.ends > body.queued) continue;  // is_put_off() moves its event
            body.queued = body.ends;
            later_.push({body.ends, task, EventKind::body, ++body.version});
        }
    }

    RateObserver* observer_;
    FairShare shares_;
    std::vector<TaskId> running_;  ///< by class: the task of it that runs
    EventQueue later_;
    Femtoseconds now_ = 0;
};

class FlowEngine final : public Engine {
public:
    EngineResult run(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                     std::uint64_t seed) const override {
        return run_flow(graph, costs, resources, seed);
    }

    void run_seeds(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                   std::uint64_t seeds, const std::function<void(EngineResult)>& each) const override {
        const FlowSimulation first(graph, costs, Dispatcher(graph, costs, resources),
                                   FairShare(costs, resources, graph.stream_numbers()), nullptr);
        struct Run {
            EngineResult result;
            std::exception_ptr fault;
        };
        std::vector<Run> runs;
        for (std::uint64_t begin = 0; begin < seeds; begin += runs.size()) {
            runs = std::vector<Run>(std::min(seeds - begin, at_once(graph, seeds)));
            const auto one = [&](std::size_t i) {
                try {
                    const auto since = std::chrono::steady_clock::now();
                    runs[i].result = finished(graph, FlowSimulation(first).run(begin + i), since);
                } catch (...) {
                    runs[i].fault = std::current_exception();
                }
            };
            // A thread that waits for the last seeds takes up no other work: the next point of a sweep would begin in
            // the middle of this one, with the same PointRunner.
            if (runs.size() == 1)
                one(0);
            else
                tbb::this_task_arena::isolate([&] { tbb::parallel_for(std::size_t{0}, runs.size(), one); });
            for (Run& run : runs) {
                if (run.fault) std::rethrow_exception(run.fault);
                each(std::move(run.result));
            }
        }
    }

private:
    /// How many seeds run at a time. Of a large graph few do: three, and three of the baseline beside them, are fewer
    /// than the seven simulations for which budget.cpp plans memory.
    static std::uint64_t at_once(const TaskGraph& graph, std::uint64_t seeds) {
        constexpr std::size_t large = 20'000;
        constexpr std::uint64_t few = 3, many = 64;
        if (graph.size() * seeds < worth_all_cores) return 1;
        return graph.size() < large ? many : few;
    }
};

}  // namespace

EngineResult run_flow(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                      std::uint64_t seed, RateObserver* observer) {
    const auto begin = std::chrono::steady_clock::now();
    std::optional<FairShare> shares;
    std::optional<Dispatcher> dispatcher;
    const auto share = [&] { shares.emplace(costs, resources, graph.stream_numbers()); };
    const auto dispatch = [&] { dispatcher.emplace(graph, costs, resources); };
    if (graph.size() < worth_all_cores)
        share();
    else
        tbb::this_task_arena::isolate([&] { tbb::parallel_invoke(share, dispatch); });
    std::vector<TaskTimes> times;
    if (observer == nullptr) times = times_without_sharing(graph, costs, resources, *shares);
    if (times.empty()) {
        if (!dispatcher) dispatch();
        times = FlowSimulation(graph, costs, *std::move(dispatcher), *std::move(shares), observer).run(seed);
    }
    return finished(graph, std::move(times), begin);
}

std::unique_ptr<Engine> make_flow_engine() {
    return std::make_unique<FlowEngine>();
}

}  // namespace overlap
