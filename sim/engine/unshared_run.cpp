#include "sim/engine/unshared_run.hpp"

#include <algorithm>
#include <limits>
#include <optional>

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

/// Neither the launch of the task nor the time at which its end is seen depends on another task.
bool is_by_itself(const Cost& cost) {
    const auto* completion = std::get_if<Completion>(&cost.end);
    return cost.launch.queued == Seconds() && completion != nullptr && completion->apart == Seconds();
}

/// Durations of the phases of a task, in the engine's arithmetic.
struct Phases {
    Femtoseconds launch, setup, body, completion, event, other_stream, other_gpu;
    bool ahead;

    /// `rate`: of the body, once it runs; infinity where it takes no time.
    Phases(const Cost& cost, double rate)
        : launch(to_femtoseconds(cost.launch.time)),
          setup(to_femtoseconds(cost.setup)),
          body(rate < std::numeric_limits<double>::infinity()
                   ? std::max<Femtoseconds>(to_femtoseconds(Seconds(1.0 / rate)), 1)
                   : 0),
          completion(to_femtoseconds(std::get<Completion>(cost.end).latency)),
          event(to_femtoseconds(std::get<Completion>(cost.end).event)),
          other_stream(to_femtoseconds(cost.handoffs.other_stream)),
          other_gpu(to_femtoseconds(cost.handoffs.other_gpu)),
          ahead(cost.launch.ahead) {}
};

}  // namespace

std::vector<TaskTimes> times_without_sharing(const TaskGraph& graph, CostView costs,
                                             const ResourceTable& resources, const FairShare& shares) {
    const std::span<const std::uint32_t> streams = graph.stream_numbers();
    const std::span<const Cost> classes = costs.classes();
    if (shares.can_saturate() || graph.has_progress_edges() ||
        !std::all_of(classes.begin(), classes.end(), is_by_itself) ||
        !claims_nothing_together(costs, resources, streams))
        return {};
    std::vector<Phases> phases;
    phases.reserve(classes.size());
    for (std::uint32_t i = 0; i < classes.size(); ++i) phases.emplace_back(classes[i], shares.top_rate(i));
    const Ends all_ends(graph, costs);
    std::vector<TaskTimes> times(graph.size());
    std::vector<Femtoseconds> ends(graph.size());
    std::vector<Femtoseconds> stream_free(graph.streams());
    Femtoseconds last = 0;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const std::uint32_t stream = streams[id];
        Femtoseconds begin = 0;
        graph.for_each_edge_into(id, [&](const Edge& edge) {
            const std::uint32_t other = streams[edge.predecessor];
            const Phases& before = phases[costs.class_of(edge.predecessor)];
            const bool other_gpu =
                edge.from_other_gpu || graph.gpu_of_stream(other) != graph.gpu_of_stream(stream);
            const Femtoseconds handoff = other_gpu         ? before.other_gpu
                                         : other != stream ? before.other_stream
                                                           : 0;
            begin = std::max(begin, date_after(ends[edge.predecessor], handoff));
        });
        const Phases& own = phases[costs.class_of(id)];
        Femtoseconds& free = stream_free[stream];
        if (!own.ahead) begin = std::max(begin, free);
        const Femtoseconds turn = std::max(date_after(begin, own.launch), free);
        const Femtoseconds body = date_after(turn, own.setup), done = date_after(body, own.body);
        times[id] = {to_seconds(std::max(begin, free)), to_seconds(body), to_seconds(done)};
        free = all_ends.is_event(id) ? date_after(done, own.event) : done;
        ends[id] = date_after(done, own.completion);
        times[id].end = to_seconds(ends[id]);
        last = std::max({last, free, ends[id]});
    }
    return last < end_of_time ? times : std::vector<TaskTimes>();
}

}  // namespace overlap
