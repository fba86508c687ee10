#include "sim/engine/unshared_run.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "sim/engine/completions.hpp"
#include "sim/engine/ends.hpp"
#include "sim/engine/event_queue.hpp"

namespace overlap {
namespace {

/// No task waits for units: each claimed resource has the tasks of one stream, which run one at a time.
bool claims_nothing_together(CostView costs, const ResourceTable& resources,
                             std::span<const std::uint32_t> streams) {
    std::vector<std::uint32_t> claimed_by(resources.pools(), UINT32_MAX);  // a stream, by pool
    std::vector<bool> seen(costs.classes().size());
    for (TaskId id = 0; id < costs.size(); ++id) {
        if (seen[costs.class_of(id)]) continue;
        seen[costs.class_of(id)] = true;
        const std::optional<Claim>& claim = costs[id].claim;
        if (!claim) continue;
        if (claim->parts.index() != 0) return false;
        std::uint32_t& stream = claimed_by[resources.pool(claim->resource)];
        if (stream == UINT32_MAX) stream = streams[id];
        if (stream != streams[id]) return false;
    }
    return true;
}

/// Durations of the phases of a task, in the engine's arithmetic.
struct Phases {
    Femtoseconds launch, queued, setup, body, completion, event, other_stream, other_gpu;
    bool ahead, apart;

    /// `rate`: of the body, once it runs; infinity where it takes no time.
    Phases(const Cost& cost, double rate)
        : launch(to_femtoseconds(cost.launch.time)),
          queued(to_femtoseconds(cost.launch.queued)),
          setup(to_femtoseconds(cost.setup)),
          body(rate < std::numeric_limits<double>::infinity()
                   ? std::max<Femtoseconds>(to_femtoseconds(Seconds(1.0 / rate)), 1)
                   : 0),
          completion(to_femtoseconds(std::get<Completion>(cost.end).latency)),
          event(to_femtoseconds(std::get<Completion>(cost.end).event)),
          other_stream(to_femtoseconds(cost.handoffs.other_stream)),
          other_gpu(to_femtoseconds(cost.handoffs.other_gpu)),
          ahead(cost.launch.ahead),
          apart(std::get<Completion>(cost.end).apart > Seconds()) {}
};

/// What the tasks of one GPU do one at a time: queued launches, and ends that the host sees apart. The simulation
/// serves them by date, the pass by task number; both orders are the same as long as no date is earlier than the date
/// before.
struct OneAtATime {
    Femtoseconds asked = -1, launcher_free = 0, ended = -1;  ///< the latest

    /// Whether `date` may come after `last`. `by_number`: so may an equal date, because the simulation serves equal
    /// dates by task number.
    static bool follows(Femtoseconds& last, Femtoseconds date, bool by_number) {
        const bool later = date > last || (by_number && date == last);
        last = date;
        return later;
    }
};

/// At one instant the simulation collects all requests for queued launches, begins these launches by task number, and
/// then hands out claims. A task that is over at the instant at which its own queued launch begins, or at which it is
/// given its claim, lets another task ask too late to be sorted. False for the costs of such a task.
bool launches_by_number(const Phases& phases, const Cost& cost) {
    const bool begins_late = cost.claim || (phases.queued > 0 && phases.launch == 0);
    return !begins_late || phases.setup + phases.body > 0;
}

}  // namespace

std::vector<TaskTimes> times_without_sharing(const TaskGraph& graph, CostView costs,
                                             const ResourceTable& resources, const FairShare& shares) {
    const std::span<const std::uint32_t> streams = graph.stream_numbers();
    const std::span<const Cost> classes = costs.classes();
    const auto polls = [](const Cost& cost) { return std::holds_alternative<Polling>(cost.end); };
    if (shares.can_saturate() || graph.has_progress_edges() || graph.runs_by_data() ||
        graph.queues().count > 0 || std::any_of(classes.begin(), classes.end(), polls) ||
        !claims_nothing_together(costs, resources, streams))
        return {};
    std::vector<Phases> phases;
    phases.reserve(classes.size());
    for (std::uint32_t i = 0; i < classes.size(); ++i) phases.emplace_back(classes[i], shares.top_rate(i));
    bool launches_numbered = true, ends_numbered = true;
    for (std::size_t i = 0; i < classes.size(); ++i) {
        launches_numbered = launches_numbered && launches_by_number(phases[i], classes[i]);
        ends_numbered = ends_numbered && (!phases[i].apart || phases[i].body > 0);
    }
    std::vector<OneAtATime> gpus(static_cast<std::size_t>(graph.gpus()));
    Completions completions(graph, costs);
    const Ends all_ends(graph, costs);
    std::vector<TaskTimes> times(graph.size());
    std::vector<Femtoseconds> ends(graph.size());
    std::vector<Femtoseconds> stream_free(graph.streams());
    Femtoseconds last = 0;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const std::uint32_t stream = streams[id];
        const Phases& own = phases[costs.class_of(id)];
        Femtoseconds begin = 0;
        bool is_first = own.ahead || graph.stream_predecessor(id) == id;  // nothing is before it
        graph.for_each_edge_into(id, [&](const Edge& edge) {
            const std::uint32_t other = streams[edge.predecessor];
            const Phases& before = phases[costs.class_of(edge.predecessor)];
            const bool other_gpu =
                edge.from_other_gpu || graph.gpu_of_stream(other) != graph.gpu_of_stream(stream);
            const Femtoseconds handoff = other_gpu         ? before.other_gpu
                                         : other != stream ? before.other_stream
                                                           : 0;
            begin = std::max(begin, date_after(ends[edge.predecessor], handoff));
            is_first = false;
        });
        Femtoseconds& free = stream_free[stream];
        if (!own.ahead) begin = std::max(begin, free);
        Femtoseconds launched = date_after(begin, own.launch);
        OneAtATime& gpu = gpus[static_cast<std::size_t>(graph.gpu_of_stream(stream))];
        if (own.queued > 0) {
            // At time zero the simulation begins the launches of the first tasks before any other task can ask.
            if (!gpu.follows(gpu.asked, begin, launches_numbered) || (begin == 0 && !is_first)) return {};
            const bool waits = begin < gpu.launcher_free;
            begin = std::max(begin, gpu.launcher_free);
            launched = gpu.launcher_free = date_after(begin, waits ? own.queued : own.launch);
        }
        const Femtoseconds turn = std::max(launched, free);
        const Femtoseconds body = date_after(turn, own.setup), done = date_after(body, own.body);
        Femtoseconds completion = own.completion;
        if (own.apart) {
            if (!gpu.follows(gpu.ended, done, ends_numbered)) return {};
            completion = to_femtoseconds(completions.delay(id, to_seconds(done)));
        }
        times[id] = {to_seconds(std::max(begin, free)), to_seconds(body), to_seconds(done)};
        free = all_ends.is_event(id) ? date_after(done, own.event) : done;
        ends[id] = date_after(done, completion);
        times[id].end = to_seconds(ends[id]);
        last = std::max({last, free, ends[id]});
    }
    return last < end_of_time ? times : std::vector<TaskTimes>();
}

}  // namespace overlap
