#include "sim/quotient/quotient.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "sim/core/mixed.hpp"
#include "sim/quotient/alike.hpp"
#include "sim/quotient/likeness.hpp"
#include "sim/quotient/tie_order.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap {
namespace {

/// Tasks of each stream in the order of their numbers.
class TasksOfStreams {
public:
    explicit TasksOfStreams(const TaskGraph& graph)
        : first_(graph.streams() + 1), tasks_(graph.size()), place_(graph.size()) {
        for (TaskId id = 0; id < graph.size(); ++id) place_[id] = first_[graph.stream_number(id) + 1]++;
        std::partial_sum(first_.begin(), first_.end(), first_.begin());
        for (TaskId id = 0; id < graph.size(); ++id)
            tasks_[first_[graph.stream_number(id)] + place_[id]] = static_cast<std::uint32_t>(id);
        for (std::size_t stream = 0; stream < graph.streams(); ++stream) {
            const Task& task = graph[tasks_[first_[stream]]];
            numbers_.emplace(key(task.gpu, task.stream), static_cast<std::uint32_t>(stream));
        }
    }
    /// The stream of a representative that each stream is seen as; empty if it is none, or has another length.
    std::vector<std::uint32_t> seen_as(const TaskGraph& graph, const Rotations& rotations) const {
        std::vector<std::uint32_t> result;
        for (std::size_t stream = 0; stream < graph.streams(); ++stream) {
            const Task& task = graph[tasks_[first_[stream]]];
            const auto found = numbers_.find(
                key(rotations.representative(task.gpu), seen_stream(task.gpu, task.stream, rotations)));
            if (found == numbers_.end() || length(found->second) != length(stream)) return {};
            result.push_back(found->second);
        }
        return result;
    }
    std::uint32_t at_place_of(TaskId id, std::size_t stream) const {
        return tasks_[first_[stream] + place_[id]];
    }

private:
    static std::uint64_t key(int gpu, int stream) {
        return std::uint64_t(static_cast<std::uint32_t>(gpu)) << 32 | static_cast<std::uint32_t>(stream);
    }
    std::uint32_t length(std::size_t stream) const { return first_[stream + 1] - first_[stream]; }

    std::vector<std::uint32_t> first_;  ///< by stream, and one element more: index into `tasks_`
    std::vector<std::uint32_t> tasks_;
    std::vector<std::uint32_t> place_;  ///< by task, on its stream
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

class Finder {
public:
    Finder(const TaskGraph& graph, CostView costs, const Rotations& rotations, const ResourceTable& resources,
           const TasksOfStreams& places, const TieOrder& ties)
        : graph_(graph),
          costs_(costs),
          rotations_(rotations),
          resources_(resources),
          places_(places),
          ties_(ties),
          like_(graph.size()),
          classes_(costs.classes().size()),
          alike_(resources.size()) {}

    std::optional<Quotient> find() {
        if (!tasks_are_alike() || !edges_are_alike() || !uses_are_alike()) return std::nullopt;
        if (!ties_.is_alike(rotations_, like_)) return std::nullopt;
        return quotient();
    }

private:
    /// Tasks of one cost, all on one stream.
    struct Class {
        std::uint32_t tasks = 0;
        std::uint32_t like = 0;  ///< class of the tasks that they are like
        TaskId first = 0;
    };

    /// The task in the same place of the same stream of the GPU's representative. Of a class, work and cost are
    /// compared for the first task only.
    bool tasks_are_alike() {
        const std::vector<std::uint32_t> streams = places_.seen_as(graph_, rotations_);
        if (streams.empty()) return false;
        for (TaskId id = 0; id < graph_.size(); ++id) {
            const TaskId other = like_[id] = places_.at_place_of(id, streams[graph_.stream_number(id)]);
            const Task &own = graph_[id], &seen = graph_[other];
            Class& of_own = classes_[costs_.class_of(id)];
            const std::uint32_t like = costs_.class_of(other);
            if (of_own.tasks++ > 0) {
                if (of_own.like != like || own.chunk != seen.chunk || own.priority != seen.priority)
                    return false;
                continue;
            }
            of_own.like = like;
            of_own.first = id;
            if (other == id) continue;
            if (!is_like(own, seen, rotations_) || !is_like(costs_[id], costs_[other])) return false;
            for_each_use(costs_[id], costs_[other], [&](ResourceId a, ResourceId b) { alike_.join(a, b); });
        }
        return std::all_of(classes_.begin(), classes_.end(),
                           [&](const Class& own) { return own.tasks == classes_[own.like].tasks; });
    }

    struct Wait {
        std::uint32_t predecessor;  ///< its class
        bool on_other_gpu;
        double from, to;
        auto operator<=>(const Wait&) const = default;
    };
    void read_waits(TaskId id, std::vector<Wait>& waits) const {
        waits.clear();
        graph_.for_each_edge_into(id, [&](const Edge& edge) {
            waits.push_back({like_[edge.predecessor], graph_[edge.predecessor].gpu != graph_[id].gpu,
                             edge.from, edge.to});
        });
    }
    bool edges_are_alike() const {
        std::vector<Wait> waits, others;
        for (TaskId id = 0; id < graph_.size(); ++id) {
            if (like_[id] == id) continue;
            read_waits(id, waits);
            read_waits(like_[id], others);
            if (waits == others) continue;
            std::sort(waits.begin(), waits.end());
            std::sort(others.begin(), others.end());
            if (waits != others) return false;
        }
        return true;
    }

    /// Whether the resources of a class have the same users, and as many as there are rotations. Users of a resource are
    /// compared by a sum of 64 bits, claims with their order.
    bool uses_are_alike() {
        std::vector<std::uint64_t> users(resources_.size()), claims(resources_.size());
        bool elsewhere = false;
        for (std::uint32_t number = 0; number < classes_.size(); ++number) {
            const Class& own = classes_[number];
            const Cost& cost = costs_.classes()[number];
            std::uint64_t use = mixed(own.like);
            for_each_use(cost, cost, [&](ResourceId resource, ResourceId) {
                users[resource] += own.tasks * mixed(use++);
            });
            elsewhere =
                elsewhere || (cost.claim && resources_[cost.claim->resource].gpu != graph_[own.first].gpu);
        }
        for (TaskId id = 0; id < graph_.size(); ++id)
            if (const auto& claim = costs_[id].claim)
                claims[claim->resource] = mixed(claims[claim->resource] ^ mixed(like_[id]));
        std::vector<int> members(resources_.size());
        for (ResourceId id = 0; id < resources_.size(); ++id) {
            const ResourceId other = alike_.first(id);
            const Resource &one = resources_[id], &like = resources_[other];
            if (users[id] == 0) continue;
            ++members[other];
            if (users[id] != users[other] || claims[id] != claims[other] || one.kind != like.kind ||
                one.capacity != like.capacity || one.units != like.units || one.order != like.order ||
                one.limits_each != like.limits_each)
                return false;
        }
        for (const int count : members)
            if (count != 0 && count != rotations_.of_orbit()) return false;
        return !elsewhere || streams_stay_apart();
    }

    /// Where tasks of several GPUs claim a resource: whether no two streams that it serves are alike.
    bool streams_stay_apart() {
        std::map<std::pair<ResourceId, std::size_t>, std::size_t> stream_of;
        for (TaskId id = 0; id < graph_.size(); ++id) {
            if (!costs_[id].claim) continue;
            const ResourceId resource = costs_[id].claim->resource;
            if (resources_[resource].order == QueueOrder::round_robin) return false;
            if (alike_.first(resource) != resource) continue;
            const auto [known, is_new] =
                stream_of.try_emplace({resource, graph_.stream_number(like_[id])}, graph_.stream_number(id));
            if (known->second != graph_.stream_number(id)) return false;
        }
        return true;
    }

    Quotient quotient() {
        constexpr std::uint32_t none = UINT32_MAX;
        Quotient result{{}, pooled(), std::vector<std::uint32_t>(graph_.size(), none), rotations_};
        if (graph_.runs_by_data()) result.graph.run_by_data();
        std::vector<std::uint32_t> number(graph_.size(), none);  // by representative
        std::vector<Wait> waits;
        for (TaskId id = 0; id < graph_.size(); ++id) {
            std::uint32_t& own = number[like_[id]];
            if (own == none) {
                own = static_cast<std::uint32_t>(result.graph.add(graph_[like_[id]]));
                read_waits(like_[id], waits);
                // Predecessors that are alike end at one time.
                std::sort(waits.begin(), waits.end());
                waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
                for (const Wait& wait : waits)
                    result.graph.add_edge(
                        {number[wait.predecessor], own, wait.from, wait.to, wait.on_other_gpu});
            }
            result.class_of[id] = own;
        }
        return result;
    }

    ResourceTable pooled() {
        constexpr std::uint32_t none = UINT32_MAX;
        std::vector<std::uint32_t> pool_of(resources_.size(), none);
        std::uint32_t pools = 0;
        for (ResourceId id = 0; id < resources_.size(); ++id) {
            std::uint32_t& pool = pool_of[alike_.first(id)];
            if (pool == none) pool = pools++;
            pool_of[id] = pool;
        }
        return resources_.pooled(std::move(pool_of), pools);
    }

    const TaskGraph& graph_;
    CostView costs_;
    const Rotations& rotations_;
    const ResourceTable& resources_;
    const TasksOfStreams& places_;
    const TieOrder& ties_;
    std::vector<std::uint32_t> like_;  ///< by task: the task of a representative that it is like
    std::vector<Class> classes_;
    Alike alike_;
};

/// Sums of unequal weights depend on their order in the last bit. Machines of one node that leave orders open draw them
/// by the numbers of tasks.
bool depends_on_numbers(CostView costs, const ResourceTable& resources) {
    return std::any_of(costs.classes().begin(), costs.classes().end(), [&](const Cost& cost) {
        return (is_drawn(cost, resources) && !resources.draws_by_node()) ||
               std::any_of(cost.demands.begin(), cost.demands.end(),
                           [](const Demand& demand) { return demand.weight != 1; });
    });
}

bool any_is_drawn(CostView costs, const ResourceTable& resources) {
    return std::any_of(costs.classes().begin(), costs.classes().end(),
                       [&](const Cost& cost) { return is_drawn(cost, resources); });
}

/// Groups of rotations, those of most rotations first; at last those of whole nodes, because many groups of GPUs span two
/// or four, and those by the period of the network, which may be long.
/// `whole_nodes`: only those that turn no GPUs inside nodes.
std::vector<Rotations> groups_of_rotations(const Topology& topology, bool whole_nodes) {
    constexpr std::size_t most_tries = 6;
    std::vector<std::tuple<int, int, int>> steps;  // representatives, nodes, locals
    const int nodes = topology.nodes(), locals = topology.gpus_per_node();
    for (int node = 1; node <= nodes; ++node)
        for (int local = 1; local <= locals; ++local)
            if (nodes % node == 0 && locals % local == 0 && 2 * node * local <= nodes * locals &&
                (local == locals || !whole_nodes))
                steps.emplace_back(node * local, node, local);
    std::sort(steps.begin(), steps.end());
    std::vector<Rotations> groups;
    for (const auto& [count, node, local] : steps)
        if (groups.size() < most_tries || local == locals || node == topology.period())
            groups.emplace_back(topology, node, local);
    return groups;
}

}  // namespace

std::optional<Quotient> quotient_of(const TaskGraph& graph, CostView costs, const Rotations& rotations,
                                    const ResourceTable& resources) {
    if (graph.queues().count > 0 || depends_on_numbers(costs, resources) ||
        (rotations.locals() < resources.gpus_per_node() && any_is_drawn(costs, resources)))
        return std::nullopt;
    return Finder(graph, costs, rotations, resources, TasksOfStreams(graph),
                  TieOrder(graph, costs, resources))
        .find();
}

std::optional<Quotient> quotient_of(const TaskGraph& graph, CostView costs, const Topology& topology,
                                    const ResourceTable& resources) {
    if (topology.gpus() < 2 || graph.size() == 0 || graph.queues().count > 0 ||
        depends_on_numbers(costs, resources))
        return std::nullopt;
    const TasksOfStreams places(graph);
    const TieOrder ties(graph, costs, resources);
    for (const Rotations& rotations : groups_of_rotations(topology, any_is_drawn(costs, resources)))
        if (auto found = Finder(graph, costs, rotations, resources, places, ties).find()) return found;
    return std::nullopt;
}

}  // namespace overlap
