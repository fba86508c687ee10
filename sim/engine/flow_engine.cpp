#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "sim/engine/dispatcher.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/fair_share.hpp"

namespace overlap {
namespace {

/// Time in whole femtoseconds. Sums don't drift, and equal instants are equal. The range is 2.5 hours;
/// rounding a date to 1 fs is 1e-8 of the shortest latency that a config may give a meaning to (0.1 µs).
using Femtoseconds = std::int64_t;

constexpr double per_second = 1e15;
Femtoseconds to_femtoseconds(Seconds time) {
    return std::llround(time.si() * per_second);
}
Seconds to_seconds(Femtoseconds time) {
    return Seconds(static_cast<double>(time) / per_second);
}

enum class Phase : std::uint8_t { launch, setup, body, completion, handoff };

/// The end of a phase of a task. Of one instant, events go by round (what an event brings about at once is of
/// the next), then by task number.
struct Event {
    Femtoseconds date;
    std::uint32_t round;
    std::uint32_t task;
    std::uint32_t version;  ///< of the body's rate; an older one is void
    Phase phase;

    friend bool operator>(const Event& a, const Event& b) {
        return std::tie(a.date, a.round, a.task) > std::tie(b.date, b.round, b.task);
    }
};

class Simulation {
public:
    Simulation(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources)
        : graph_(graph),
          costs_(costs),
          dispatcher_(graph, costs),
          shares_(costs, resources),
          states_(graph.size()) {
        times_.resize(graph.size());
        events_.reserve(2 * graph.size());
        std::map<std::pair<int, int>, std::uint32_t> streams;
        for (TaskId id = 0; id < graph.size(); ++id) {
            const auto next = static_cast<std::uint32_t>(streams.size());
            states_[id].stream = streams.try_emplace({graph[id].gpu, graph[id].stream}, next).first->second;
        }
        stream_free_.resize(streams.size());
    }

    EngineResult run() {
        const auto begin = std::chrono::steady_clock::now();
        carry_out(dispatcher_.begin());
        while (!events_.empty()) {
            now_ = events_.front().date;
            while (!events_.empty() && events_.front().date == now_) happen(pop());
            round_ = 0;
            update_rates();
        }
        return finished(std::move(times_), begin);
    }

private:
    struct State {
        std::uint32_t stream = 0;
        std::uint32_t version = 0;
        double left = 1.0;  ///< share of the body that is not done at `since`
        Femtoseconds since = 0;
        double rate = 0;  ///< since then
    };

    void push(Femtoseconds delay, TaskId task, Phase phase) {
        const std::uint32_t round = delay == 0 ? round_ + 1 : 0;
        events_.push_back(
            {now_ + delay, round, static_cast<std::uint32_t>(task), states_[task].version, phase});
        std::push_heap(events_.begin(), events_.end(), std::greater<>());
    }

    Event pop() {
        std::pop_heap(events_.begin(), events_.end(), std::greater<>());
        const Event event = events_.back();
        events_.pop_back();
        return event;
    }

    void carry_out(const Dispatcher::Next& next) {
        for (const TaskId task : next.set_up) set_up(task);
        for (const TaskId task : next.launch) {
            times_[task].start = to_seconds(now_);
            push(to_femtoseconds(costs_[task].launch), task, Phase::launch);
        }
    }

    void set_up(TaskId task) {
        // A launch that ran ahead is hidden behind the task before; the span begins where that one left the
        // stream.
        if (costs_[task].launch_ahead)
            times_[task].start = std::max(times_[task].start, stream_free_[states_[task].stream]);
        push(to_femtoseconds(costs_[task].setup), task, Phase::setup);
    }

    void happen(const Event& event) {
        const TaskId task = event.task;
        if (event.phase == Phase::body && event.version != states_[task].version) return;
        round_ = event.round;
        switch (event.phase) {
            case Phase::launch:
                return carry_out(dispatcher_.launched(task));
            case Phase::setup:
                return start_body(task);
            case Phase::body:
                return end_body(task);
            case Phase::completion:
                times_[task].end = to_seconds(now_);
                push(to_femtoseconds(costs_[task].handoff), task, Phase::handoff);
                return carry_out(dispatcher_.ended(task));
            case Phase::handoff:
                return carry_out(dispatcher_.handed_over(task));
        }
    }

    void start_body(TaskId task) {
        times_[task].body = to_seconds(now_);
        if (!shares_.takes_time(index(task))) return push(0, task, Phase::body);
        states_[task].since = now_;
        shares_.start(index(task));
        hold(task, +1);
    }

    void end_body(TaskId task) {
        if (shares_.takes_time(index(task))) {
            shares_.stop(index(task));
            hold(task, -1);
        }
        stream_free_[states_[task].stream] = to_seconds(now_);
        push(to_femtoseconds(costs_[task].completion), task, Phase::completion);
        carry_out(dispatcher_.body_done(task));
    }

    void hold(TaskId task, double sign) {
        for (const Hold& hold : costs_[task].holds)
            shares_.hold(static_cast<FairShare::Index>(hold.resource), sign * hold.units);
    }

    void update_rates() {
        for (const FairShare::Index task : shares_.resolve()) {
            State& state = states_[task];
            state.left -= state.rate * static_cast<double>(now_ - state.since) / per_second;
            state.since = now_;
            state.rate = shares_.rate(task);
            ++state.version;
            const double seconds = std::max(state.left, 0.0) / state.rate;
            push(std::max<Femtoseconds>(to_femtoseconds(Seconds(seconds)), 1), task, Phase::body);
        }
    }

    static FairShare::Index index(TaskId task) { return static_cast<FairShare::Index>(task); }

    const TaskGraph& graph_;
    std::span<const Cost> costs_;
    Dispatcher dispatcher_;
    FairShare shares_;
    std::vector<State> states_;
    std::vector<TaskTimes> times_;
    std::vector<Seconds> stream_free_;  ///< when the last body on it was over
    std::vector<Event> events_;         ///< a heap, earliest first
    Femtoseconds now_ = 0;
    std::uint32_t round_ = 0;
};

class FlowEngine final : public Engine {
public:
    EngineResult run(const TaskGraph& graph, std::span<const Cost> costs,
                     const ResourceTable& resources) const override {
        return Simulation(graph, costs, resources).run();
    }
};

}  // namespace

std::unique_ptr<Engine> make_flow_engine() {
    return std::make_unique<FlowEngine>();
}

}  // namespace overlap
