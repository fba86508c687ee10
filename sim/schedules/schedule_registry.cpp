#include <algorithm>

#include "sim/core/shown.hpp"
#include "sim/schedules/operator_list.hpp"

namespace overlap {

std::unique_ptr<Schedule> make_serial();
std::unique_ptr<Schedule> make_concurrent();
std::unique_ptr<Schedule> make_shard_p2p();
std::unique_ptr<Schedule> make_shard_direct();
std::unique_ptr<Schedule> make_ring_chunked();
std::unique_ptr<Schedule> make_hierarchical_chunked();
std::unique_ptr<Schedule> make_ficco();
std::unique_ptr<Schedule> make_flag_gated();
std::unique_ptr<Schedule> make_t3();
std::unique_ptr<Schedule> make_work_group_fused();
template <CommShape shape, Uniformity uniformity, Granularity granularity>
std::unique_ptr<Schedule> make_ficco_point();

namespace {

using enum CommShape;
using enum Uniformity;
using enum Granularity;

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
// Rings and hierarchies forward what they received, which an all-to-all has no use for; with tokens in K a
// ring is one of K-slabs, the same transfers with accumulating GEMMs.
bool forwards(const Workload& workload) {
    return dependent_pair(workload) && workload.pair()->collective != CollectiveKind::all_to_all;
}

const std::vector<std::string> whole{"agent",     "transfer", "copy_cus", "copy_priority", "order",
                                     "algorithm", "channels", "gemm_cus", "dma_commands",  "prelaunch"};
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
        {"serial", "Each operator after the one before it has ended on its GPU; nothing overlaps.", whole,
         false, any, make_serial},
        {"concurrent",
         "Each operator as soon as the data it needs are there; collectives beside computation.", whole,
         false, unordered, make_concurrent},
        {"shard_p2p", "Whole shards, one peer at a time on one stream; a GEMM for each shard.", shards, true,
         computes_several_shards, make_shard_p2p},
        {"ring_chunked",
         "Neighbour ring, P-1 steps, each shard in C pipelined chunks; a GEMM for each shard or chunk.", ring,
         true, forwards, make_ring_chunked},
        {"hierarchical_chunked",
         "Chunk c over NICs to the own rail, then on inside the node; own shard, then one GEMM a step.",
         pieces, false, forwards, make_hierarchical_chunked},
        {"shard_direct", "Whole shards, all peers at once; a GEMM for each shard.", shards, false,
         computes_several_shards, make_shard_direct},
        {"uniform_fused_1d",
         "Chunk c of every shard at step c; one GEMM of M/C rows a step, own chunk included.", pieces, false,
         computes_several_shards, make_ficco_point<one_d, uniform, fused>},
        {"hetero_fused_1d", "Own shard whole; chunk c of the P-1 others at step c, one GEMM a step.", pieces,
         false, computes_several_shards, make_ficco_point<one_d, hetero, fused>},
        {"uniform_unfused_1d", "Chunk c of every shard at step c; one GEMM a chunk, own chunks too.", pieces,
         false, dependent_pair, make_ficco_point<one_d, uniform, unfused>},
        {"hetero_unfused_1d", "Own shard whole; chunk c of the P-1 others at step c, one GEMM a chunk.",
         pieces, false, computes_several_shards, make_ficco_point<one_d, hetero, unfused>},
        {"uniform_fused_2d", "Column block c of every shard at step c, strided; one GEMM a step.", pieces,
         false, computes_several_shards, make_ficco_point<two_d, uniform, fused>},
        {"hetero_fused_2d", "Own shard whole; column block c of the P-1 others at step c, one GEMM a step.",
         pieces, false, computes_several_shards, make_ficco_point<two_d, hetero, fused>},
        {"uniform_unfused_2d", "Column block c of every shard at step c; one GEMM a block, own blocks too.",
         pieces, false, dependent_pair, make_ficco_point<two_d, uniform, unfused>},
        {"hetero_unfused_2d",
         "Own shard whole; column block c of the P-1 others at step c, one GEMM a block.", pieces, false,
         computes_several_shards, make_ficco_point<two_d, hetero, unfused>},
        {"ficco", "Any point of the space {1d, 2d} x {uniform, hetero} x {fused, unfused}, by parameters.",
         space, false, computes_several_shards, make_ficco},
        {"flag_gated",
         "One GEMM a GPU, whose thread blocks poll a flag for each piece, or set one (fused kernels).", gated,
         false, gateable, make_flag_gated},
        {"t3",
         "T3 (arXiv 2401.16677): one GEMM a GPU whose stores trigger a ring reduce-scatter chunk by chunk; "
         "the "
         "memory at the destination adds what comes (where device/near_memory can, else kernels add).",
         triggered, true, sums_results, make_t3, Json::object(), false},
        {"work_group_fused",
         "Fused computation and collective (arXiv 2305.06942): one kernel a GPU whose work-groups store "
         "results "
         "at the peer they are for as they end, remote ones first; also a memory-bound operator's, and in "
         "lists.",
         stores, false, produces, make_work_group_fused, Json::object(), false},
    };
    return entries;
}

const ScheduleEntry& find_schedule(const std::string& name) {
    std::vector<std::string> names;
    for (const auto& entries : {schedules(), schedules_in_use()})
        for (const ScheduleEntry& entry : entries) {
            if (entry.name == name) return entry;
            names.push_back(entry.name);
        }
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
    std::string others;
    for (const ScheduleEntry& other : schedules())
        if (other.handles(workload)) others += (others.empty() ? "" : ", ") + other.name;
    throw UserError("schedule '" + entry.name + "' does not serve a workload '" + workload.form() +
                    "' (schedules that do: " + others + ")");
}

}  // namespace overlap
