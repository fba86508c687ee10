#include "sim/run/alike_ranks.hpp"

#include <algorithm>
#include <unordered_map>

#include "sim/quotient/representatives.hpp"
#include "sim/run/experiment.hpp"

namespace overlap {
namespace {

/// Up to so many GPUs are simulated with a whole graph in any case.
constexpr int most_built = 128;

/// The length that is cut into shards, of each of which a GPU has one.
template <class AnyPair>
auto sharded_length(AnyPair& pair) {
    if (pair.shard_dim == ShardDim::k) return &pair.gemm.k;
    return pair.gathers_results() ? nullptr : &pair.gemm.m;
}
bool has_equal_shards(const Scenario& scenario) {
    const std::int64_t* length = sharded_length(*scenario.workload.pair());
    return length == nullptr || *length % scenario.machine->topology.gpus() == 0;
}

/// The scenario on the small machine, with shards of the same length.
Scenario on_small(const Scenario& scenario, const std::shared_ptr<const Machine>& small) {
    Scenario result = scenario.of_all_gpus();
    result.machine = small;
    std::int64_t* length = sharded_length(std::get<Pair>(result.workload.content));
    if (length != nullptr) *length = *length / scenario.machine->topology.gpus() * small->topology.gpus();
    return result;
}

/// The rotations of the quotient of a schedule's whole graph, if the graph of their representatives is the same as the
/// quotient.
std::optional<Rotations> rotations_of(const Scenario& small, const ScheduleEntry& schedule,
                                      ScheduleParams params) {
    if (!schedule.by_representatives(small.workload, params)) return std::nullopt;
    const auto build = [&](const std::optional<Rotations>& alike) {
        params.transfers.alike = alike;
        return schedule.build(small.workload, small.machine->topology, params);
    };
    const Topology& topology = small.machine->topology;
    const ResourceTable& resources = small.machine->resources;
    const CostModels models(small.settings.cost_models);
    const auto price_of = [&](const TaskGraph& graph) {
        return price(graph, small.workload, *small.machine, models, effects_of(small));
    };
    const TaskGraph whole = build(std::nullopt);
    const std::optional<Quotient> quotient = quotient_of(whole, price_of(whole), topology, resources);
    if (!quotient) return std::nullopt;
    const TaskGraph few = build(quotient->rotations);
    if (!is_same(*quotient, few, price_of(few), pooled_by(quotient->rotations, few, topology, resources)))
        return std::nullopt;
    return quotient->rotations;
}

/// Whether a rotation maps routes onto routes: every link onto one link that is like it. Looked at: the routes of GPUs of
/// the first node, of the last node of the first period and of the last node of all, to all GPUs with their number in
/// other nodes, and to all GPUs of their node. A network in which numbers of nodes wrap treats many nodes differently
/// from few; these routes show it.
bool turns_routes(const Topology& topology, int nodes, int locals) {
    const int per_node = topology.gpus_per_node(), all_nodes = topology.nodes();
    const auto turned = [&](int gpu) {
        return (gpu / per_node + nodes) % all_nodes * per_node + (gpu % per_node + locals) % per_node;
    };
    std::unordered_map<std::size_t, std::size_t> there, back;
    const auto rotations = [&](int src, int dst) {
        const LinkIds links = topology.route(src, dst).links;
        const LinkIds others = topology.route(turned(src), turned(dst)).links;
        return std::ranges::equal(links, others, [&](std::size_t a, std::size_t b) {
            const Link &one = topology.links()[a], &other = topology.links()[b];
            return one.bandwidth == other.bandwidth && one.latency == other.latency &&
                   there.try_emplace(a, b).first->second == b && back.try_emplace(b, a).first->second == a;
        });
    };
    for (const int node : {0, topology.period() - 1, all_nodes - 1})
        for (const int local : {0, per_node - 1}) {
            const int gpu = node * per_node + local;
            for (int other = 0; other < all_nodes; ++other)
                if (other != node &&
                    !(rotations(gpu, other * per_node + local) && rotations(other * per_node + local, gpu)))
                    return false;
            for (int other = 0; other < per_node; ++other)
                if (other != local && !rotations(gpu, node * per_node + other)) return false;
        }
    return true;
}

/// The rotations of the large machine by as many of its periods as `rotations` has of the small one's, if they map its routes
/// onto routes, too.
std::optional<Rotations> on_large(const std::optional<Rotations>& rotations, const Topology& small,
                                  const Topology& topology) {
    if (!rotations || rotations->nodes() == small.nodes()) return std::nullopt;
    const int periods = rotations->nodes() / small.period();
    const int nodes =
        rotations->nodes() % small.period() == 0 ? periods * topology.period() : rotations->nodes();
    if (topology.nodes() % nodes != 0 || !turns_routes(topology, nodes, 0) ||
        !turns_routes(topology, 0, rotations->locals()))
        return std::nullopt;
    return Rotations(topology, nodes, rotations->locals());
}

bool can_build_representatives(const Scenario& scenario) {
    return scenario.workload.pair() != nullptr && scenario.settings.engine == default_engine &&
           scenario.enqueued_by_one() && scenario.repeat == Repeat::once &&
           scenario.schedule->by_representatives(scenario.workload, scenario.params);
}

int few_chunks(const Scenario& scenario) {
    return std::min(scenario.params.chunks, 2);
}

}  // namespace

bool may_build_representatives(const Scenario& scenario) {
    const Topology& topology = scenario.machine->topology;
    return topology.gpus() > most_built && can_build_representatives(scenario);
}

std::string alikeness_key(const Scenario& scenario) {
    const Topology& topology = scenario.machine->topology;
    // The energy of all GPUs' tasks is another sum than that of representatives, to the last bit.
    if (topology.gpus() < 2 || topology.gpus() > most_built || topology.device().energy ||
        !can_build_representatives(scenario) || !has_equal_shards(scenario))
        return "";
    const Pair& pair = *scenario.workload.pair();
    ScheduleParams params = scenario.params;
    params.chunks = few_chunks(scenario);
    const Json key{to_json(params, scenario.schedule->parameters),
                   pair.collective,
                   pair.order,
                   pair.shard_dim,
                   pair.gemm.dtype,
                   scenario.settings.cost_models,
                   scenario.settings.without};
    return key.dump();
}

std::optional<Rotations> alike_ranks_of_few(const Scenario& scenario) {
    Scenario few = scenario.of_all_gpus();
    few.params.chunks = few_chunks(scenario);
    return rotations_of(few, *few.schedule, few.params);
}

void find_alike_ranks(Scenario& scenario, const std::shared_ptr<const Machine>& small) {
    const Topology& topology = scenario.machine->topology;
    if (!has_equal_shards(scenario) || topology.nodes() < 2 * small->topology.nodes()) return;
    const Scenario few = on_small(scenario, small);
    scenario.params.transfers.alike =
        on_large(rotations_of(few, *few.schedule, few.params), small->topology, topology);
    scenario.serial_alike =
        on_large(rotations_of(few, find_schedule("serial"), few.whole_params()), small->topology, topology);
}

}  // namespace overlap
