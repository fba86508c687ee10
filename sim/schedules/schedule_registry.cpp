
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/schedules/operator_list.hpp"

namespace overlap {

AddTasks add_serial, add_concurrent, add_two_streams, add_ring_chunked, add_hierarchical_chunked, add_pieces,
    add_flag_gated, add_t3, add_work_group_fused;

namespace {

using enum CommShape;
using enum Uniformity;
using enum Granularity;

bool always(const Workload&, const ScheduleParams&) {
    return true;
}
bool where_the_algorithm_does(const Workload& workload, const ScheduleParams& params) {
    return workload.pair() != nullptr && params.transfers.commands == DmaCommands::copy &&
           collective_algorithm(params.algorithm).by_representatives;
}
bool any(const Workload&) {
    return true;
}
bool unordered(const Workload& workload) {
    return workload.pair() == nullptr || workload.pair()->order == Order::independent;
}
bool dependent_pair(const Workload& workload) {
    return workload.pair() != nullptr && workload.pair()->order != Order::independent;
}
// Where results are gathered a GPU computes one shard, its own, which goes to everybody.
bool computes_several_shards(const Workload& workload) {
    return dependent_pair(workload) && !workload.pair()->gathers_results();
}
// With tokens in K every tile of the GEMM needs every shard.
bool gateable(const Workload& workload) {
    return dependent_pair(workload) && workload.pair()->shard_dim == ShardDim::m;
}
bool sums_results(const Workload& workload) {
    const Pair* pair = workload.pair();
    return pair != nullptr && pair->order == Order::gemm_first &&
           (pair->collective == CollectiveKind::reduce_scatter ||
            pair->collective == CollectiveKind::all_reduce);
}
// A GEMM or a memory-bound operator, and a collective of what it makes; in a list, any such two.
bool produces(const Workload& workload) {
    if (const Pair* pair = workload.pair())
        return pair->order == Order::gemm_first && !pair->gathers_results();
    return sends_a_result(workload);
}
// PyTorch gathers rows of A, or sums rows of C.
bool in_symmetric_memory(const Workload& workload) {
    return gateable(workload) && computes_several_shards(workload) &&
           workload.pair()->collective == (workload.pair()->order == Order::collective_first
                                               ? CollectiveKind::all_gather
                                               : CollectiveKind::reduce_scatter);
}
// Rings and hierarchies forward what they received, which an all-to-all has no use for; with tokens in K a
// ring is one of K-slabs, the same transfers with accumulating GEMMs.
bool forwards(const Workload& workload) {
    return dependent_pair(workload) && workload.pair()->collective != CollectiveKind::all_to_all;
}

const std::vector<std::string> whole{"agent",   "transfer",     "copy_cus", "copy_priority",
                                     "order",   "algorithm",    "channels", "gemm_cus",
                                     "cu_mask", "dma_commands", "prelaunch"};
const std::vector<std::string> shards{"agent", "transfer", "copy_cus", "copy_priority", "order"};
const std::vector<std::string> ring{"chunks", "agent", "transfer", "copy_cus", "copy_priority", "gemm"};
const std::vector<std::string> gated{"chunks",        "agent", "transfer", "copy_cus",
                                     "copy_priority", "order", "gemm_cus", "prelaunch"};
const std::vector<std::string> triggered{"chunks", "agent", "copy_cus", "copy_priority"};
const std::vector<std::string> stores{"chunks", "agent", "copy_cus", "copy_priority", "order"};
const std::vector<std::string> pieces{"chunks",        "agent", "transfer", "copy_cus",
                                      "copy_priority", "order", "scatter"};
const std::vector<std::string> space{"comm_shape", "uniformity", "granularity",   "chunks", "agent",
                                     "transfer",   "copy_cus",   "copy_priority", "order",  "scatter"};

}  // namespace

std::span<const ScheduleEntry> schedules() {
    static const std::vector<ScheduleEntry> entries{
        {.name = "serial",
         .summary = "Each operator after the one before it has ended on its GPU; nothing overlaps.",
         .parameters = whole,
         .handles = any,
         .add_tasks = add_serial,
         .by_representatives = where_the_algorithm_does},
        {.name = "concurrent",
         .summary = "Each operator as soon as the data it needs are there; collectives beside computation.",
         .parameters = whole,
         .handles = unordered,
         .add_tasks = add_concurrent,
         .in_sequence = false},
        {.name = "shard_p2p",
         .summary = "Whole shards, one peer at a time on one stream; a GEMM for each shard.",
         .parameters = shards,
         .handles = computes_several_shards,
         .add_tasks = add_pieces,
         .fixed_point = PiecePoint{one_d, hetero, unfused},
         .by_representatives = always,
         .shard_level = true,
         .single_stream = true},
        {.name = "two_streams",
         .summary =
             "Whole shards by DMA; copies and GEMMs alternate between two streams, with barriers and local "
             "copies around them; one sum.",
         .parameters = {"scatter"},
         .handles = in_symmetric_memory,
         .add_tasks = add_two_streams,
         .barriers = true,
         .advised = false},
        {.name = "ring_chunked",
         .summary =
             "Neighbour ring, P-1 steps, each shard in C pipelined chunks; a GEMM for each shard or chunk.",
         .parameters = ring,
         .handles = forwards,
         .add_tasks = add_ring_chunked,
         .single_stream = true},
        {.name = "hierarchical_chunked",
         .summary =
             "Chunk c over NICs to the own rail, then on inside the node; own shard, then one GEMM a step.",
         .parameters = pieces,
         .handles = forwards,
         .add_tasks = add_hierarchical_chunked,
         .fixed_point = PiecePoint{one_d, hetero, fused},
         .by_representatives = always,
         .between_nodes = true},
        {.name = "shard_direct",
         .summary = "Whole shards, all peers at once; a GEMM for each shard.",
         .parameters = shards,
         .handles = computes_several_shards,
         .add_tasks = add_pieces,
         .fixed_point = PiecePoint{one_d, hetero, unfused},
         .by_representatives = always,
         .shard_level = true},
        {.name = "uniform_fused_1d",
         .summary = "Chunk c of every shard at step c; one GEMM of M/C rows a step, own chunk included.",
         .parameters = pieces,
         .handles = computes_several_shards,
         .add_tasks = add_pieces,
         .fixed_point = PiecePoint{one_d, uniform, fused},
         .by_representatives = always},
        {.name = "hetero_fused_1d",
         .summary = "Own shard whole; chunk c of the P-1 others at step c, one GEMM a step.",
         .parameters = pieces,
         .handles = computes_several_shards,
         .add_tasks = add_pieces,
         .fixed_point = PiecePoint{one_d, hetero, fused},
         .by_representatives = always},
        {.name = "uniform_unfused_1d",
         .summary = "Chunk c of every shard at step c; one GEMM a chunk, own chunks too.",
         .parameters = pieces,
         .handles = dependent_pair,
         .add_tasks = add_pieces,
         .fixed_point = PiecePoint{one_d, uniform, unfused},
         .by_representatives = always},
        {.name = "hetero_unfused_1d",
         .summary = "Own shard whole; chunk c of the P-1 others at step c, one GEMM a chunk.",
         .parameters = pieces,
         .handles = computes_several_shards,
         .add_tasks = add_pieces,
         .fixed_point = PiecePoint{one_d, hetero, unfused},
         .by_representatives = always},
        {.name = "uniform_fused_2d",
         .summary = "Column block c of every shard at step c, strided; one GEMM a step.",
         .parameters = pieces,
         .handles = computes_several_shards,
         .add_tasks = add_pieces,
         .fixed_point = PiecePoint{two_d, uniform, fused},
         .by_representatives = always},
        {.name = "hetero_fused_2d",
         .summary = "Own shard whole; column block c of the P-1 others at step c, one GEMM a step.",
         .parameters = pieces,
         .handles = computes_several_shards,
         .add_tasks = add_pieces,
         .fixed_point = PiecePoint{two_d, hetero, fused},
         .by_representatives = always},
        {.name = "uniform_unfused_2d",
         .summary = "Column block c of every shard at step c; one GEMM a block, own blocks too.",
         .parameters = pieces,
         .handles = dependent_pair,
         .add_tasks = add_pieces,
         .fixed_point = PiecePoint{two_d, uniform, unfused},
         .by_representatives = always},
        {.name = "hetero_unfused_2d",
         .summary = "Own shard whole; column block c of the P-1 others at step c, one GEMM a block.",
         .parameters = pieces,
         .handles = computes_several_shards,
         .add_tasks = add_pieces,
         .fixed_point = PiecePoint{two_d, hetero, unfused},
         .by_representatives = always},
        {.name = "ficco",
         .summary = "Any point of the space {1d, 2d} x {uniform, hetero} x {fused, unfused}, by parameters.",
         .parameters = space,
         .handles = computes_several_shards,
         .add_tasks = add_pieces,
         .fixed_point = std::nullopt,
         .by_representatives = always,
         .advised = false},
        {.name = "flag_gated",
         .summary =
             "One GEMM a GPU, whose thread blocks poll a flag for each piece, or set one (fused kernels).",
         .parameters = gated,
         .handles = gateable,
         .add_tasks = add_flag_gated,
         .own_kernel = true},
        {.name = "t3",
         .summary =
             "T3 (arXiv 2401.16677): one GEMM a GPU whose stores trigger a ring reduce-scatter chunk by chunk; the memory at the destination adds what comes (where device/near_memory can, else kernels add).",
         .parameters = triggered,
         .handles = sums_results,
         .add_tasks = add_t3,
         .single_stream = true,
         .own_kernel = true,
         .advised = false},
        {.name = "work_group_fused",
         .summary =
             "Fused computation and collective (arXiv 2305.06942): one kernel a GPU whose work-groups store results at the peer they are for as they end, remote ones first; also a memory-bound operator's, and in lists.",
         .parameters = stores,
         .handles = produces,
         .add_tasks = add_work_group_fused,
         .in_sequence = false,
         .own_kernel = true,
         .advised = false},
    };
    return entries;
}

TaskGraph ScheduleEntry::build(const Workload& workload, const Topology& topology,
                               const ScheduleParams& params, GraphLimit limit) const {
    TaskGraph graph(limit);
    ScheduleParams resolved = params;
    resolved.point = point(params);
    add_tasks(workload, topology, resolved, graph);
    return graph;
}

ScheduleParams ScheduleEntry::read(ConfigObject given, const Workload& workload,
                                   const Topology& topology) const {
    const Pair* pair = workload.pair();
    const bool collective_first = pair == nullptr || pair->order != Order::gemm_first;
    return read_parameters(std::move(given), {parameters, collective_first, single_stream}, topology);
}

bool ScheduleEntry::takes(std::string_view parameter) const {
    return contains(parameters, parameter);
}

const ScheduleEntry& find_schedule(const std::string& name, const std::vector<std::string>& more) {
    const auto found = std::ranges::find(schedules(), name, &ScheduleEntry::name);
    if (found != schedules().end()) return *found;
    std::vector<std::string> names = mapped(schedules(), &ScheduleEntry::name);
    names.insert(names.end(), more.begin(), more.end());
    throw UserError("schedule " + in_quotes(name) + " is not known" + suggestion(name, names));
}

Json with_defaults(const ScheduleEntry& entry, const Json& given) {
    if (!given.is_object()) return given;
    Json params = entry.defaults;
    params.update(given);
    return params;
}

void require_handled(const ScheduleEntry& entry, const Workload& workload) {
    if (entry.handles(workload)) return;
    std::vector<std::string> others;
    for (const ScheduleEntry& other : schedules())
        if (other.handles(workload)) others.push_back(other.name);
    throw UserError("schedule '" + entry.name + "' does not serve a workload '" + workload.form() +
                    "' (schedules that do: " + joined(others) + ")");
}

}  // namespace overlap
