#include "sim/engine/dispatcher.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace overlap {
namespace {

/// Reads streams, not tasks, because each task takes many more bytes.
Handoff handoff(const TaskGraph& graph, const Edge& edge) {
    if (edge.of_progress()) return Handoff::flag;
    const std::size_t a = graph.stream_number(edge.predecessor), b = graph.stream_number(edge.successor);
    if (edge.from_other_gpu || graph.gpu_of_stream(a) != graph.gpu_of_stream(b)) return Handoff::other_gpu;
    return a == b ? Handoff::same_stream : Handoff::other_stream;
}

}  // namespace

Dispatcher::Dispatcher(const TaskGraph& graph, CostView costs, const ResourceTable& resources)
    : costs_(costs),
      states_(graph.size()),
      successors_(graph.edge_count()),
      first_successor_(graph.size() + 1),
      hands_over_(graph.size()),
      next_in_stream_(graph.size()),
      pools_(graph, costs, resources) {
    if (std::any_of(costs.classes().begin(), costs.classes().end(),
                    [](const Cost& c) { return c.launch.queued > Seconds(); })) {
        launch_.launchers.resize(static_cast<std::size_t>(graph.gpus()));
        for (TaskId id = 0; id < graph.size(); ++id)
            launch_.gpus.push_back(static_cast<std::uint32_t>(graph.gpu_of_stream(graph.stream_number(id))));
    }
    std::vector<State> at_first;  // by class
    at_first.reserve(costs.classes().size());
    for (const Cost& cost : costs.classes()) {
        State& state = at_first.emplace_back();
        state.copied.launches_ahead = cost.launch.ahead;
        state.copied.queues_to_launch = cost.launch.queued > Seconds();
        state.copied.claims = cost.claim.has_value();
        state.copied.goes_in_steps = claimed<Tiles>(cost) != nullptr || claimed<Blocks>(cost) != nullptr;
    }
    for (TaskId id = 0; id < graph.size(); ++id) {
        next_in_stream_[id] = static_cast<std::uint32_t>(id);
        const TaskId previous = graph.stream_predecessor(id);
        if (previous != id) next_in_stream_[previous] = static_cast<std::uint32_t>(id);
        State& state = states_[id] = at_first[costs.class_of(id)];
        state.has_stream = previous == id;
    }
    if (graph.runs_by_data()) add_order_by_data(graph);
    if (graph.queues().count > 0) add_queues(graph);
    add_stops(graph);
    add_successors(graph);
}

void Dispatcher::add_order_by_data(const TaskGraph& graph) {
    open_.streams.resize(graph.streams());
    open_.stream_of.assign(graph.stream_numbers().begin(), graph.stream_numbers().end());
    open_.next_of_operator.resize(graph.size());
    std::map<std::pair<std::uint32_t, int>, TaskId> last;  // by stream and operator
    for (TaskId id = 0; id < graph.size(); ++id) {
        open_.next_of_operator[id] = static_cast<std::uint32_t>(id);
        if (graph[id].stream == host_stream) continue;
        states_[id].by_data = true;
        states_[id].has_stream = false;
        if (graph[id].op < 0) continue;
        const auto [found, is_first] = last.try_emplace({open_.stream_of[id], graph[id].op}, id);
        if (is_first) continue;
        states_[id].after_own = true;
        open_.next_of_operator[std::exchange(found->second, id)] = static_cast<std::uint32_t>(id);
    }
}

void Dispatcher::add_queues(const TaskGraph& graph) {
    constexpr std::uint32_t empty = UINT32_MAX;
    const auto count = static_cast<std::size_t>(graph.queues().count);
    queues_.until_end = graph.queues().until_end;
    std::vector<std::size_t> streams(
        static_cast<std::size_t>(graph.gpus()));  // by GPU: how many have a queue
    std::vector<std::uint32_t> queue_of(graph.streams(), empty);
    std::vector<std::uint32_t> last(static_cast<std::size_t>(graph.gpus()) * count, empty);  // by queue
    queues_.next.resize(graph.size());
    for (TaskId id = 0; id < graph.size(); ++id) {
        queues_.next[id] = static_cast<std::uint32_t>(id);
        if (graph[id].stream == host_stream) continue;
        const auto gpu = static_cast<std::size_t>(graph[id].gpu);
        std::uint32_t& queue = queue_of[graph.stream_number(id)];
        if (queue == empty) queue = static_cast<std::uint32_t>(gpu * count + streams[gpu]++ % count);
        if (last[queue] != empty) {
            queues_.next[last[queue]] = static_cast<std::uint32_t>(id);
            states_[id].has_queue = false;
        }
        last[queue] = static_cast<std::uint32_t>(id);
    }
}

void Dispatcher::add_successors(const TaskGraph& graph) {
    // Sorted by predecessor and its stop; successors of one stop keep the order of the graph.
    for (std::size_t i = 0; i < graph.edge_count(); ++i) ++first_successor_[graph.edge(i).predecessor + 1];
    std::partial_sum(first_successor_.begin(), first_successor_.end(), first_successor_.begin());
    std::vector<std::uint32_t> next(first_successor_.begin(), first_successor_.end() - 1);
    for (std::size_t i = 0; i < graph.edge_count(); ++i) {
        const Edge edge = graph.edge(i);
        const TaskId id = edge.predecessor;
        const Handoff kind = handoff(graph, edge);
        const std::uint32_t to = edge.to > 0 ? stop_at(edge.successor, edge.to) : none;
        const std::uint32_t from = edge.from < 1 ? stop_at(id, edge.from) : none;
        auto how = static_cast<std::uint32_t>(kind);
        if (kind == Handoff::flag) {
            how += static_cast<std::uint32_t>(flags_.size());
            flags_.push_back({to, from});
        }
        successors_[next[id]++] = {static_cast<std::uint32_t>(edge.successor), how};
        ++(to == none ? states_[edge.successor].waits_for : stops_[to].waits_for);
        if (from == none)
            hands_over_[id] |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind));
        else
            stops_[from].flags = true;
    }
    if (stops_.empty()) return;
    const auto first = [this](TaskId id) { return successors_.begin() + first_successor_[id]; };
    for (TaskId id = 0; id < states_.size(); ++id)
        if (states_[id].stop != states_[id].last_stop)
            std::stable_sort(first(id), first(id + 1), [this](const Successor& a, const Successor& b) {
                return flag(a).from < flag(b).from;
            });
}

std::span<const Dispatcher::Successor> Dispatcher::successors(TaskId task, std::size_t stop) const {
    const std::span all(successors_.begin() + first_successor_[task],
                        successors_.begin() + first_successor_[task + 1]);
    if (stops_.empty()) return all;
    const auto found =
        std::ranges::equal_range(all, stop, {}, [this](const Successor& one) { return flag(one).from; });
    return {found.begin(), found.end()};
}

void Dispatcher::add_stops(const TaskGraph& graph) {
    struct At {
        std::uint32_t task;
        double share;
        auto operator<=>(const At&) const = default;
    };
    const bool any_tail = std::any_of(costs_.classes().begin(), costs_.classes().end(),
                                      [](const Cost& cost) { return claimed<Tail>(cost) != nullptr; });
    if (!graph.has_progress_edges() && !any_tail) return;
    std::vector<At> all;
    for (std::size_t i = 0; i < graph.edge_count(); ++i) {
        const Edge edge = graph.edge(i);
        if (edge.from < 1) all.push_back({static_cast<std::uint32_t>(edge.predecessor), edge.from});
        if (edge.to > 0) all.push_back({static_cast<std::uint32_t>(edge.successor), edge.to});
    }
    for (TaskId id = 0; id < graph.size(); ++id)
        if (const auto* tail = claimed<Tail>(costs_[id]))
            all.push_back({static_cast<std::uint32_t>(id), tail->from});
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    auto next = all.begin();
    for (TaskId id = 0; id < graph.size(); ++id) {
        states_[id].stop = static_cast<std::uint32_t>(stops_.size());
        for (; next != all.end() && next->task == id; ++next) stops_.push_back({next->share});
        states_[id].last_stop = static_cast<std::uint32_t>(stops_.size());
    }
}

std::uint32_t Dispatcher::stop_at(TaskId task, double share) const {
    const auto begin = stops_.begin() + states_[task].stop, end = stops_.begin() + states_[task].last_stop;
    const auto found =
        std::lower_bound(begin, end, share, [](const Stop& stop, double at) { return stop.at < at; });
    assert(found != end && found->at == share);
    return static_cast<std::uint32_t>(found - stops_.begin());
}

void Dispatcher::clear() {
    next_.released.clear();
    next_.launch.clear();
    next_.set_up.clear();
    next_.resume.clear();
}

const Dispatcher::Next& Dispatcher::begin(std::uint64_t seed, UnitPools::Progress progress,
                                          UnitPools::Clock now) {
    pools_.begin(seed, std::move(progress), std::move(now));
    clear();
    for (TaskId id = 0; id < states_.size(); ++id) advance(id);
    serve_streams();
    serve_launchers();
    return next_;
}

void Dispatcher::ask_for_stream(TaskId task) {
    if (!states_[task].by_data || states_[task].after_own) return;
    std::vector<std::uint32_t>& ready = open_.streams[open_.stream_of[task]].ready;
    ready.push_back(static_cast<std::uint32_t>(task));
    std::push_heap(ready.begin(), ready.end(), std::greater<>());
    open_.to_serve.push_back(open_.stream_of[task]);
}

// At the end of an instant, because a task of a lower number may become ready at the same one.
void Dispatcher::serve_streams() {
    for (const std::uint32_t stream : std::exchange(open_.to_serve, {})) {
        OpenStream& open = open_.streams[stream];
        if (open.busy || open.ready.empty()) continue;
        open.busy = true;
        std::pop_heap(open.ready.begin(), open.ready.end(), std::greater<>());
        const TaskId task = open.ready.back();
        open.ready.pop_back();
        states_[task].has_stream = true;
        advance(task);
    }
}

void Dispatcher::leave_queue(TaskId task) {
    const TaskId follower = queues_.next[task];
    if (follower == task) return;
    State& state = states_[follower];
    state.has_queue = true;
    if (state.has_stream && state.launch_over) advance(follower);
}

const Dispatcher::Next& Dispatcher::launched(TaskId task) {
    clear();
    states_[task].launch_over = true;
    advance(task);
    if (!states_[task].copied.queues_to_launch || launch_time(task) == Seconds()) return next_;
    Launcher& launcher = launch_.launchers[launch_.gpus[task]];
    launcher.busy = launcher.next < launcher.waiting.size();
    if (launcher.busy) next_.launch.push_back(launcher.waiting[launcher.next++]);
    return next_;
}

void Dispatcher::begin_launch(TaskId task) {
    states_[task].launch_begun = true;
    if (states_[task].copied.queues_to_launch)
        launch_.waiting_now.push_back(static_cast<std::uint32_t>(task));
    else
        next_.launch.push_back(task);
}

// First come, first served. A launch that takes no time makes no other wait.
void Dispatcher::take_launcher(TaskId task) {
    Launcher& launcher = launch_.launchers[launch_.gpus[task]];
    if (launcher.busy) {
        states_[task].waited_to_launch = true;
        launcher.waiting.push_back(static_cast<std::uint32_t>(task));
        return;
    }
    launcher.busy = costs_[task].launch.time > Seconds();
    next_.launch.push_back(task);
}

void Dispatcher::serve_launchers() {
    if (!std::is_sorted(launch_.waiting_now.begin(), launch_.waiting_now.end()))
        std::sort(launch_.waiting_now.begin(), launch_.waiting_now.end());
    for (const TaskId task : launch_.waiting_now) take_launcher(task);
    launch_.waiting_now.clear();
}

const Dispatcher::Next& Dispatcher::begin_launches() {
    clear();
    serve_streams();
    serve_launchers();
    return next_;
}

double Dispatcher::next_stop(TaskId task) const {
    const State& state = states_[task];
    const double end = state.copied.goes_in_steps ? pools_.next_step(task) : 1.0;
    return state.stop == state.last_stop ? end : std::min(stops_[state.stop].at, end);
}

bool Dispatcher::is_numbered(TaskId task) const {
    const State& state = states_[task];
    return state.stop != state.last_stop && stops_[state.stop].at == next_stop(task);
}

bool Dispatcher::ends_next(TaskId task) const {
    return states_[task].stop == states_[task].last_stop &&
           (!states_[task].copied.goes_in_steps || pools_.ends_next_step(task));
}

const Dispatcher::Next& Dispatcher::reached(TaskId task) {
    clear();
    State& state = states_[task];
    if (!is_numbered(task)) {
        if (pools_.go_on(task)) next_.resume.push_back(task);
        return next_;
    }
    const auto* tail = claimed<Tail>(costs_[task]);
    if (tail != nullptr && tail->from == stops_[state.stop].at) pools_.keep(task, tail->units);
    state.stalled = stops_[state.stop].waits_for > 0;
    if (!state.stalled) {
        ++state.stop;
        next_.resume.push_back(task);
    }
    return next_;
}

const Dispatcher::Next& Dispatcher::body_done(TaskId task, bool keeps_stream) {
    clear();
    if (states_[task].copied.claims) pools_.release(task);
    return keeps_stream ? next_ : stream_left(task);
}

const Dispatcher::Next& Dispatcher::stream_left(TaskId task) {
    clear();
    if (queues_.until_end) leave_queue(task);
    if (states_[task].by_data) {
        open_.streams[open_.stream_of[task]].busy = false;
        open_.to_serve.push_back(open_.stream_of[task]);
        if (const TaskId follower = open_.next_of_operator[task]; follower != task) {
            states_[follower].after_own = false;
            advance(follower);
        }
    } else if (const TaskId follower = next_in_stream_[task]; follower != task) {
        states_[follower].has_stream = true;
        advance(follower);
    }
    return next_;
}

bool Dispatcher::hands_over(TaskId task, Handoff kind) const {
    return (hands_over_[task] >> static_cast<unsigned>(kind) & 1U) != 0;
}

void Dispatcher::release(const Successor& successor, Date at, Date now) {
    State& state = states_[successor.task];
    const std::uint32_t stop = flag(successor).stop;
    if (stop == none) {
        state.released = std::max(state.released, at);
        if (state.waits_for == 1 && state.released > now) {
            next_.released.push_back({successor.task, state.released});
            return;
        }
        --state.waits_for;
        advance(successor.task);
    } else if (--stops_[stop].waits_for == 0 && state.stalled && state.stop == stop) {
        state.stalled = false;
        ++state.stop;
        next_.resume.push_back(successor.task);
    }
}

const Dispatcher::Next& Dispatcher::handed_over(TaskId task, Handoff kind, Date at, Date now) {
    clear();
    for (const Successor& successor : successors(task, none))
        if (successor.kind() == kind) release(successor, at, now);
    return next_;
}

const Dispatcher::Next& Dispatcher::flagged(TaskId task, std::size_t stop, Date now) {
    clear();
    for (const Successor& successor : successors(task, stop)) release(successor, now, now);
    return next_;
}

const Dispatcher::Next& Dispatcher::released(TaskId task) {
    clear();
    --states_[task].waits_for;
    advance(task);
    return next_;
}

const Dispatcher::Next& Dispatcher::settle() {
    clear();
    const bool in_order = !queues_.next.empty() && !queues_.until_end;
    std::size_t begun = 0;
    do {
        pools_.settle(next_.set_up, next_.resume);
        for (; in_order && begun < next_.set_up.size(); ++begun) leave_queue(next_.set_up[begun]);
    } while (!pools_.settled());
    std::erase_if(next_.resume, [this](TaskId task) { return states_[task].stalled; });
    return next_;
}

// Called whenever the state of the task has changed. Each phase begins once, when everything that it needs is
// available.
void Dispatcher::advance(TaskId task) {
    State& state = states_[task];
    if (state.waits_for > 0) return;
    if (!state.launch_begun) {
        if (!state.has_stream && !state.copied.launches_ahead) return ask_for_stream(task);
        begin_launch(task);
        return;
    }
    if (!state.launch_over) return;
    if (!state.has_stream) return ask_for_stream(task);
    if (!state.has_queue) return;
    if (state.copied.claims) {
        pools_.request(task);
        return;
    }
    next_.set_up.push_back(task);
    if (!queues_.next.empty() && !queues_.until_end) leave_queue(task);
}

}  // namespace overlap
