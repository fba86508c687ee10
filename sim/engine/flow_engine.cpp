#include <algorithm>
#include <chrono>

#include "sim/engine/completions.hpp"
#include "sim/engine/dispatcher.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/fair_share.hpp"
#include "sim/engine/flow_engine.hpp"
#include "sim/engine/polls.hpp"

namespace overlap {
namespace {

class Simulation {
public:
    Simulation(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources,
               std::uint64_t seed, RateObserver* observer)
        : observer_(observer),
          graph_(graph),
          costs_(costs),
          dispatcher_(
              graph, costs, resources, seed, [this](TaskId task) { return progress(task); },
              [this] { return to_seconds(now_); }),
          polls_(graph, costs),
          completions_(graph, costs),
          shares_(costs, resources, graph.stream_numbers()),
          states_(graph.size()),
          times_(graph.size()),
          stream_free_(graph.streams()),
          later_(graph.size()) {}

    EngineResult run() {
        const auto begin = std::chrono::steady_clock::now();
        carry_out(dispatcher_.begin());
        while (!later_.empty() || !at_once_.empty()) {
            if (at_once_.empty()) now_ = later_.next_date();
            instant();
            update_rates();
        }
        return finished(graph_, std::move(times_), begin);
    }

private:
    struct State {
        std::uint32_t version = 0;
        double done = 0;  ///< share of the body at `since`
        double goal = 1;  ///< the share to stop at
        Femtoseconds since = 0;
        double rate = 0;  ///< since then
        bool begun = false;
        bool running = false;  ///< not at a stop
    };

    void push(Femtoseconds delay, TaskId task, Phase phase, std::size_t detail = 0) {
        const Event event(date_after(now_, delay), task, phase, detail);
        if (delay == 0) return at_once_.push_back(event);
        later_.push(event);
    }

    // All that falls on this instant, in rounds: a launch or a body of no time ends in the next round. Of one
    // round, events go by task number. Units are given away when a round brings nothing about any more.
    void instant() {
        const auto before = [](const Event& a, const Event& b) { return a.order < b.order; };
        if (!later_.empty() && later_.next_date() == now_) later_.take_next(at_once_);
        while (!at_once_.empty()) {
            round_.swap(at_once_);
            if (!std::is_sorted(round_.begin(), round_.end(), before))
                std::sort(round_.begin(), round_.end(), before);
            for (const Event& event : round_) happen(event);
            round_.clear();
            if (at_once_.empty()) carry_out(dispatcher_.settle());
        }
    }

    void carry_out(const Dispatcher::Next& next) {
        for (const TaskId task : next.resume) resume_body(task);
        for (const TaskId task : next.set_up) set_up(task);
        for (const TaskId task : next.launch) {
            times_[task].start = to_seconds(now_);
            const Seconds launch =
                polls_.begin(task, times_[task].start, stream_free_[graph_.stream_number(task)],
                             dispatcher_.launch_time(task));
            push(to_femtoseconds(launch), task, Phase::launch);
        }
    }

    void set_up(TaskId task) {
        // A launch that ran ahead is hidden behind the task before; the span begins where that one left the
        // stream.
        if (costs_[task].launch_ahead)
            times_[task].start = std::max(times_[task].start, stream_free_[graph_.stream_number(task)]);
        const Seconds setup = dispatcher_.setup(task);
        if (setup == Seconds()) return start_body(task);
        push(to_femtoseconds(setup), task, Phase::setup);
    }

    void happen(const Event& event) {
        const TaskId task = event.task();
        if (event.phase() == Phase::body && event.detail() != states_[task].version) return;
        if (now_ == end_of_time) fail_at_end_of_time(graph_[task]);
        switch (event.phase()) {
            case Phase::launch:
                return carry_out(dispatcher_.launched(task));
            case Phase::setup:
                return start_body(task);
            case Phase::body:
                return dispatcher_.ends_next(task) ? end_body(task) : stop_body(task);
            case Phase::completion:
                return end(task);
            case Phase::event:
                return leave_stream(task, polls_.event_keeps_claim(task) ? dispatcher_.body_done(task)
                                                                         : dispatcher_.stream_left(task));
            case Phase::handoff:
                return carry_out(dispatcher_.handed_over(task, static_cast<Handoff>(event.detail())));
            case Phase::flag:
                return carry_out(dispatcher_.flagged(task, event.detail()));
        }
    }

    void start_body(TaskId task) {
        times_[task].body = to_seconds(now_);
        for (const Hold& hold : costs_[task].holds) shares_.hold(hold);
        states_[task].begun = true;
        resume_body(task);
    }

    // Stops are far between, so a body that need not wait at one is taken off and put back all the same.
    void resume_body(TaskId task) {
        State& state = states_[task];
        if (!state.begun) return;
        if (state.running) leave(task, progress(task));
        state.goal = dispatcher_.next_stop(task);
        if (!shares_.takes_time(index(task))) return push(0, task, Phase::body, state.version);
        if (costs_[task].crowding)
            shares_.limit(index(task), 1 / (costs_[task].body.si() * dispatcher_.stretch(task)));
        state.since = now_;
        state.running = true;
        shares_.start(index(task));
    }

    void leave(TaskId task, double done) {
        State& state = states_[task];
        ++state.version;
        state.done = done;
        state.rate = 0;
        state.running = false;
        if (!shares_.takes_time(index(task))) return;
        shares_.stop(index(task));
        if (observer_ != nullptr) observer_->rate(to_seconds(now_), task, 0);
    }

    void stop_body(TaskId task) {
        leave(task, states_[task].goal);
        if (dispatcher_.is_numbered(task)) {
            const std::size_t stop = dispatcher_.stop_number(task);
            if (dispatcher_.flags(stop)) push(to_femtoseconds(costs_[task].flag), task, Phase::flag, stop);
        }
        carry_out(dispatcher_.reached(task));
    }

    void end_body(TaskId task) {
        leave(task, states_[task].goal);
        for (const Hold& hold : costs_[task].holds) shares_.give_back(hold);
        const Seconds now = times_[task].done = to_seconds(now_);
        polls_.end(task);
        if (!costs_[task].polling) {
            const Seconds completion = completions_.delay(task, now);
            const Seconds event = polls_.event(task);
            if (event == Seconds()) {
                leave_stream(task, dispatcher_.body_done(task));
            } else {
                if (!polls_.event_keeps_claim(task)) carry_out(dispatcher_.body_done(task, true));
                push(to_femtoseconds(event), task, Phase::event);
            }
            return end_after(completion, task);
        }
        const std::span<const Polls::Seen> seen = polls_.seen(task, now);
        if (polls_.keeps_stream(task))
            carry_out(dispatcher_.body_done(task, true));
        else
            leave_stream(task, dispatcher_.body_done(task));
        for (const auto& [other, delay] : seen) end_after(delay, other);
    }

    void leave_stream(TaskId task, const Dispatcher::Next& next) {
        stream_free_[graph_.stream_number(task)] = to_seconds(now_);
        carry_out(next);
    }

    void end_after(Seconds delay, TaskId task) {
        if (delay == Seconds()) return end(task);
        push(to_femtoseconds(delay), task, Phase::completion);
    }

    void end(TaskId task) {
        times_[task].end = to_seconds(now_);
        times_[task].unit_seconds = dispatcher_.unit_seconds(task);
        if (polls_.keeps_stream(task)) leave_stream(task, dispatcher_.stream_left(task));
        dispatcher_.hand_over(
            task, [&](Handoff kind) { carry_out(dispatcher_.handed_over(task, kind)); },
            [&](Handoff kind, Seconds delay) {
                push(to_femtoseconds(delay), task, Phase::handoff, static_cast<std::size_t>(kind));
            });
    }

    double progress(TaskId task) const {
        const State& state = states_[task];
        return state.done + state.rate * static_cast<double>(now_ - state.since) / femtoseconds_per_second;
    }

    void update_rates() {
        for (const FairShare::Index task : shares_.resolve()) {
            State& state = states_[task];
            state.done = progress(task);
            state.since = now_;
            state.rate = shares_.rate(task);
            if (observer_ != nullptr) observer_->rate(to_seconds(now_), task, state.rate);
            ++state.version;
            const double seconds = std::max(state.goal - state.done, 0.0) / state.rate;
            push(std::max<Femtoseconds>(to_femtoseconds(Seconds(seconds)), 1), task, Phase::body,
                 state.version);
        }
    }

    static FairShare::Index index(TaskId task) { return static_cast<FairShare::Index>(task); }

    RateObserver* observer_;
    const TaskGraph& graph_;
    std::span<const Cost> costs_;
    Dispatcher dispatcher_;
    Polls polls_;
    Completions completions_;
    FairShare shares_;
    std::vector<State> states_;
    std::vector<TaskTimes> times_;
    std::vector<Seconds> stream_free_;  ///< when the last body on it was over
    EventQueue later_;
    std::vector<Event> round_, at_once_;  ///< of this instant: this round, the next
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
    return Simulation(graph, costs, resources, seed, observer).run();
}

std::unique_ptr<Engine> make_flow_engine() {
    return std::make_unique<FlowEngine>();
}

}  // namespace overlap
