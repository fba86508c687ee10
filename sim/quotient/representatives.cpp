#include "sim/quotient/representatives.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/quotient/alike.hpp"
#include "sim/quotient/likeness.hpp"

namespace overlap {
namespace {

constexpr std::uint32_t none = UINT32_MAX;

/// Links that rotations map onto each other, as far as a graph's copies cross them.
class AlikeLinks {
public:
    AlikeLinks(const Rotations& rotations, const Topology& topology)
        : rotations_(rotations),
          topology_(topology),
          alike_(topology.links().size()),
          used_(topology.links().size()) {}

    void add(const CopyWork& copy) {
        for_each_way(copy, [&](int src, int dst) {
            add(src, dst);
            if (copy.agent == Agent::cu) add(dst, src);  // requests of pulls, acknowledgements of pushes
        });
    }
    bool is_used(std::size_t link) const { return used_[link]; }
    std::uint32_t first(std::size_t link) { return alike_.first(link); }

private:
    /// A link is next to one end of its route, or between switches: both ends' representatives have it in their routes.
    void add(int src, int dst) {
        const LinkIds links = topology_.route(src, dst).links;
        for (const std::size_t link : links) used_[link] = true;
        for (const int end : {src, dst}) {
            const int from = rotations_.seen_from(end, src), to = rotations_.seen_from(end, dst);
            if (from == src && to == dst) continue;
            const LinkIds seen = topology_.route(from, to).links;
            for (std::size_t i = 0; i < std::min(links.size(), seen.size()); ++i) {
                used_[seen[i]] = true;
                alike_.join(links[i], seen[i]);
            }
        }
    }

    const Rotations& rotations_;
    const Topology& topology_;
    Alike alike_;
    std::vector<bool> used_;
};

using Wait = std::tuple<TaskId, bool, double, double>;
std::vector<Wait> sorted_waits(const TaskGraph& graph, TaskId id) {
    std::vector<Wait> waits;
    graph.for_each_edge_into(id, [&](const Edge& edge) {
        const bool on_other_gpu = edge.from_other_gpu || graph[edge.predecessor].gpu != graph[id].gpu;
        waits.emplace_back(edge.predecessor, on_other_gpu, edge.from, edge.to);
    });
    std::sort(waits.begin(), waits.end());
    return waits;
}

}  // namespace

ResourceTable pooled_by(const Rotations& rotations, const TaskGraph& representatives,
                        const Topology& topology, const ResourceTable& resources) {
    AlikeLinks links(rotations, topology);
    for (TaskId id = 0; id < representatives.size(); ++id) {
        const auto* copy = std::get_if<CopyWork>(&representatives[id].work);
        const TaskId before = representatives.stream_predecessor(id);
        if (copy != nullptr && (before == id || representatives[before].work != representatives[id].work))
            links.add(*copy);
    }

    const ResourceId first_link = resources.link(0);
    std::vector<std::uint32_t> pool_of(resources.size(), 0);  // 0: links that are not used
    std::uint32_t pools = 1;
    for (ResourceId id = 0; id < first_link; ++id) {
        const int gpu = resources[id].gpu, representative = rotations.representative(gpu);
        const ResourceId like = id - resources.compute_units(gpu) + resources.compute_units(representative);
        pool_of[id] = like == id ? pools++ : pool_of[like];
    }
    std::vector<std::uint32_t> pool_of_class(topology.links().size(), none);
    for (std::size_t link = 0; link < pool_of_class.size(); ++link) {
        if (!links.is_used(link)) continue;
        std::uint32_t& pool = pool_of_class[links.first(link)];
        if (pool == none) pool = pools++;
        pool_of[resources.link(link)] = pool;
    }
    return resources.pooled(std::move(pool_of), pools);
}

bool is_same(const Quotient& quotient, const TaskGraph& representatives, CostView costs,
             const ResourceTable& pooled) {
    if (quotient.graph.size() != representatives.size()) return false;
    std::map<std::size_t, std::size_t> there, back;  // pools of one and of the other
    bool same = true;
    for (TaskId id = 0; same && id < representatives.size(); ++id) {
        same = is_like(quotient.graph[id], representatives[id], quotient.rotations) &&
               sorted_waits(quotient.graph, id) == sorted_waits(representatives, id);
        for_each_use(costs[id], costs[id], [&](ResourceId resource, ResourceId) {
            const std::size_t one = quotient.resources.pool(resource), other = pooled.pool(resource);
            same = same && there.try_emplace(one, other).first->second == other &&
                   back.try_emplace(other, one).first->second == one;
        });
    }
    return same;
}

}  // namespace overlap
