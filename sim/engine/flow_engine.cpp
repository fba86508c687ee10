#include <algorithm>
#include <chrono>

#include "sim/engine/event_queue.hpp"
#include "sim/engine/fair_share.hpp"
#include "sim/engine/flow_engine.hpp"
#include "sim/engine/task_lifecycle.hpp"

namespace overlap {
namespace {

struct FlowPace {
    Femtoseconds since = 0;  ///< when Body::done was done
    double rate = 0;         ///< since then [fraction of the body a second]
};

class FlowSimulation : public TaskLifecycle<FlowSimulation, FlowPace> {
public:
    FlowSimulation(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources,
                   std::uint64_t seed, RateObserver* observer)
        : TaskLifecycle(graph, costs, resources, seed),
          observer_(observer),
          shares_(costs, resources, graph.stream_numbers()),
          later_(graph.size()) {}

    EngineResult run() {
        const auto begin = std::chrono::steady_clock::now();
        TaskLifecycle::begin();
        while (!later_.empty() || !at_once_.empty()) {
            if (at_once_.empty()) now_ = later_.next_date();
            if (!later_.empty() && later_.next_date() == now_) later_.take_next(at_once_);
            instant();
            update_rates();
        }
        return finished(graph_, std::move(times_), begin);
    }

private:
    friend TaskLifecycle;

    Seconds now() const { return to_seconds(now_); }

    void after(Seconds delay, TaskId task, Phase phase, std::size_t detail = 0) {
        push(to_femtoseconds(delay), task, phase, detail);
    }

    void push(Femtoseconds delay, TaskId task, Phase phase, std::size_t detail) {
        const Event event(date_after(now_, delay), task, phase, detail);
        if (delay == 0) return at_once_.push_back(event);
        later_.push(event);
    }

    void happens(TaskId task) const {
        if (now_ == end_of_time) fail_at_end_of_time(graph_[task]);
    }

    bool run_body(TaskId task) {
        if (!shares_.takes_time(index(task))) return false;
        if (claimed<Blocks>(costs_[task]) != nullptr)
            shares_.limit(index(task), 1 / (costs_[task].body.si() * dispatcher_.stretch(task)));
        body(task).since = now_;
        shares_.start(index(task));
        return true;
    }

    void halt_body(TaskId task) {
        body(task).rate = 0;
        shares_.stop(index(task));
        if (observer_ != nullptr) observer_->rate(now(), task, 0);
    }

    double progress(TaskId task) const {
        const Body& at = body(task);
        return at.done + at.rate * static_cast<double>(now_ - at.since) / femtoseconds_per_second;
    }

    void hold(const Hold& hold) { shares_.hold(hold); }
    void give_back(const Hold& hold) { shares_.give_back(hold); }

    void update_rates() {
        for (const FairShare::Index task : shares_.resolve()) {
            Body& body = this->body(task);
            body.done = progress(task);
            body.since = now_;
            body.rate = shares_.rate(task);
            if (observer_ != nullptr) observer_->rate(now(), task, body.rate);
            ++body.version;
            const double seconds = std::max(body.goal - body.done, 0.0) / body.rate;
            push(std::max<Femtoseconds>(to_femtoseconds(Seconds(seconds)), 1), task, Phase::body,
                 body.version);
        }
    }

    static FairShare::Index index(TaskId task) { return static_cast<FairShare::Index>(task); }

    RateObserver* observer_;
    FairShare shares_;
    EventQueue later_;
    Femtoseconds now_ = 0;
};

class FlowEngine final : public Engine {
public:
    EngineResult run(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources,
                     std::uint64_t seed) const override {
        return run_flow(graph, costs, resources, seed);
    }
};

}  // namespace

EngineResult run_flow(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources,
                      std::uint64_t seed, RateObserver* observer) {
    return FlowSimulation(graph, costs, resources, seed, observer).run();
}

std::unique_ptr<Engine> make_flow_engine() {
    return std::make_unique<FlowEngine>();
}

}  // namespace overlap
