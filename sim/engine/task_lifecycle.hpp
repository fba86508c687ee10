#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/dispatcher.hpp"
#include "sim/engine/ends.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/event_queue.hpp"

namespace overlap {

/// The life of every task of a graph, phase by phase (see `Cost`), and the times of its phases. Both engines
/// derive from it; an engine supplies time and rates by these members:
///
///     Seconds now() const;
///     Date date(Seconds delay = {}) const;  // now, or `delay` later
///     static Date later(Date, Seconds delay);
///     static Seconds time(Date);
///     void at(Date, TaskId, EventKind, std::size_t detail = 0);  // now: at_once_
///     void happens(const Event&);       // now
///     bool run_body(TaskId);            // from body(task).done to its goal; false: the body takes no time
///     void halt_body(TaskId);           // one that runs
///     double progress(TaskId) const;    // fraction of the body that is done now
///     void hold(const Hold&);
///     void give_back(const Hold&);
///
/// run_body() ends in an EventKind::body with the version that the body has then. Pace: what the engine keeps for
/// each body.
template <class Engine, class Pace>
class TaskLifecycle {
protected:
    using Date = Dispatcher::Date;

    /// `dispatcher`: of the same graph and costs.
    TaskLifecycle(const TaskGraph& graph, CostView costs, Dispatcher dispatcher)
        : graph_(graph),
          costs_(costs),
          dispatcher_(std::move(dispatcher)),
          times_(graph.size()),
          ends_(graph, costs),
          bodies_(costs.classes().size()),
          stream_free_(graph.streams()) {}

    struct Body : Pace {
        std::uint32_t version = 0;  ///< events of another are void; a class goes on counting
        bool begun = false;
        bool running = false;  ///< begun, and not at a stop
        double done = 0;       ///< fraction of the body
        double goal = 1;       ///< fraction at which it stops next
    };

    /// A simulation may be copied before begin(); from then on the dispatcher calls this one.
    void begin(std::uint64_t seed) {
        carry_out(dispatcher_.begin(
            seed, [this](TaskId task) { return engine().progress(task); },
            [this] { return engine().now(); }));
    }

    /// Processes all events of this instant in rounds: a phase without duration ends in the next round. Events of one
    /// round are processed by task number. When a round causes no further events, queued launches begin; when these
    /// cause none either, free units are handed out.
    void instant() {
        const auto before = [](const Event& a, const Event& b) { return a.order < b.order; };
        while (!at_once_.empty()) {
            round_.swap(at_once_);
            if (!std::is_sorted(round_.begin(), round_.end(), before))
                std::sort(round_.begin(), round_.end(), before);
            for (const Event& event : round_) happen(event);
            round_.clear();
            if (at_once_.empty() && dispatcher_.launches_wait()) carry_out(dispatcher_.begin_launches());
            if (at_once_.empty() && dispatcher_.claims_change()) carry_out(dispatcher_.settle());
        }
    }

    /// Number of tasks that have ended.
    std::size_t ended() const { return ended_; }

    const TaskGraph& graph_;
    CostView costs_;
    Dispatcher dispatcher_;
    std::vector<TaskTimes> times_;
    std::vector<Event> at_once_;  ///< events of this instant

    Body& body(TaskId task) { return bodies_[costs_.class_of(task)]; }
    const Body& body(TaskId task) const { return bodies_[costs_.class_of(task)]; }
    bool is_void(const Event& event) const {
        return event.kind() == EventKind::body && event.detail() != body(event.task()).version;
    }

private:
    Engine& engine() { return static_cast<Engine&>(*this); }
    void after(Seconds delay, TaskId task, EventKind kind, std::size_t detail = 0) {
        engine().at(engine().date(delay), task, kind, detail);
    }

    void carry_out(const Dispatcher::Next& next) {
        if (!next.empty()) begin_all(next);
    }

    [[gnu::noinline]] void begin_all(const Dispatcher::Next& next) {
        for (const TaskId task : next.resume) resume_body(task);
        for (const TaskId task : next.set_up) set_up(task);
        for (const TaskId task : next.launch) launch(task);
        for (const auto& [task, date] : next.released) engine().at(date, task, EventKind::release);
    }

    void launch(TaskId task) {
        times_[task].start = engine().now();
        after(ends_.launch_time(task, times_[task].start, stream_free(task), dispatcher_.launch_time(task)),
              task, EventKind::launch);
    }

    void set_up(TaskId task) {
        // A launch that ran ahead is hidden behind the task before; the span begins where that one left the
        // stream.
        if (costs_[task].launch.ahead) times_[task].start = std::max(times_[task].start, stream_free(task));
        const Seconds setup = dispatcher_.setup(task);
        if (setup == Seconds()) return start_body(task);
        after(setup, task, EventKind::setup);
    }

    void happen(const Event& event) {
        const TaskId task = event.task();
        if (is_void(event)) return;
        engine().happens(event);
        switch (event.kind()) {
            case EventKind::launch:
                return carry_out(dispatcher_.launched(task));
            case EventKind::setup:
                return start_body(task);
            case EventKind::late_ranks:
                return begin_body(task);
            case EventKind::body:
                return dispatcher_.ends_next(task) ? end_body(task) : stop_body(task);
            case EventKind::completion:
                return end(task, engine().date());
            case EventKind::event:
                return leave_stream(task, dispatcher_.stream_left(task));
            case EventKind::handoff:
                return carry_out(dispatcher_.handed_over(task, static_cast<Handoff>(event.detail())));
            case EventKind::release:
                return carry_out(dispatcher_.released(task));
            case EventKind::flag:
                return carry_out(dispatcher_.flagged(task, event.detail(), engine().date()));
        }
    }

    void start_body(TaskId task) {
        times_[task].body = engine().now();
        for (const Hold& hold : costs_[task].holds) engine().hold(hold);
        const Seconds late_ranks = dispatcher_.late_ranks(task);
        if (late_ranks == Seconds()) return begin_body(task);
        after(late_ranks, task, EventKind::late_ranks);
    }

    void begin_body(TaskId task) {
        body(task).begun = true;
        resume_body(task);
    }

    // The body is halted and resumed at each stop, even if it need not wait there.
    void resume_body(TaskId task) {
        Body& body = this->body(task);
        if (!body.begun) return;
        if (body.running) halt(task, engine().progress(task));
        body.goal = dispatcher_.next_stop(task);
        body.running = engine().run_body(task);
        if (!body.running) after(Seconds(), task, EventKind::body, body.version);
    }

    void halt(TaskId task, double done) {
        Body& body = this->body(task);
        ++body.version;
        body.done = done;
        if (std::exchange(body.running, false)) engine().halt_body(task);
    }

    void stop_body(TaskId task) {
        halt(task, body(task).goal);
        if (dispatcher_.is_numbered(task)) {
            const std::size_t stop = dispatcher_.stop_number(task);
            if (dispatcher_.flags(stop)) after(costs_[task].handoffs.flag, task, EventKind::flag, stop);
        }
        carry_out(dispatcher_.reached(task));
    }

    void end_body(TaskId task) {
        halt(task, 0);
        body(task).begun = false;
        for (const Hold& hold : costs_[task].holds) engine().give_back(hold);
        const Seconds now = times_[task].done = engine().now();
        const Ends::Ending ending = ends_.body_over(task, now);
        if (ending.keeps_stream)
            carry_out(dispatcher_.body_done(task, true));
        else
            leave_stream(task, dispatcher_.body_done(task));
        if (ending.event > Seconds()) after(ending.event, task, EventKind::event);
        for (const auto& [other, delay] : ending.seen) end_after(delay, other);
    }

    Seconds& stream_free(TaskId task) { return stream_free_[graph_.stream_number(task)]; }

    void leave_stream(TaskId task, const Dispatcher::Next& next) {
        stream_free(task) = engine().now();
        carry_out(next);
    }

    void end_after(Seconds delay, TaskId task) {
        if (delay > Seconds() && ends_.keeps_stream(task)) return after(delay, task, EventKind::completion);
        end(task, engine().date(delay));
    }

    /// `task` ends at the date `at`, which is now if it keeps its stream. Tasks that wait for several others need no
    /// event for each of them.
    void end(TaskId task, Date at) {
        times_[task].end = Engine::time(at);
        times_[task].unit_seconds = dispatcher_.unit_seconds(task);
        ++ended_;
        if (ends_.keeps_stream(task)) leave_stream(task, dispatcher_.stream_left(task));
        for (const Handoff kind : all_handoffs) {
            if (!dispatcher_.hands_over(task, kind)) continue;
            const Date over = Engine::later(at, latency(costs_[task], kind)), now = engine().date();
            if (kind == Handoff::flag && over > now)
                engine().at(over, task, EventKind::handoff, static_cast<std::size_t>(kind));
            else
                carry_out(dispatcher_.handed_over(task, kind, over, now));
        }
    }

    Ends ends_;
    std::vector<Body> bodies_;          ///< by class: its tasks are on one stream, one after another
    std::vector<Seconds> stream_free_;  ///< by stream: when its last body was over
    std::vector<Event> round_;          ///< events of this round
    std::size_t ended_ = 0;
};

}  // namespace overlap
