#include "sim/schedules/schedule.hpp"

namespace overlap {
namespace {

bool is_pair_of(const Workload& workload, CollectiveKind kind, Order order) {
    const Pair* pair = workload.pair();
    return pair != nullptr && pair->collective == kind && pair->order == order;
}
bool gathers(const Workload& workload) {
    return is_pair_of(workload, CollectiveKind::all_gather, Order::collective_first);
}
bool reduces(const Workload& workload) {
    return is_pair_of(workload, CollectiveKind::reduce_scatter, Order::gemm_first);
}
bool reduces_everywhere(const Workload& workload) {
    return is_pair_of(workload, CollectiveKind::all_reduce, Order::gemm_first);
}
bool gathers_or_reduces(const Workload& workload) {
    return gathers(workload) || reduces(workload);
}
// With tokens in K every tile of the GEMM needs every shard.
bool gathers_rows(const Workload& workload) {
    return gathers(workload) && workload.pair()->shard_dim == ShardDim::m;
}
bool gathers_rows_or_reduces(const Workload& workload) {
    return gathers_rows(workload) || reduces(workload);
}
bool gathers_results(const Workload& workload) {
    return is_pair_of(workload, CollectiveKind::all_gather, Order::gemm_first);
}
// Tensor or expert parallel: one way before a GEMM, back after it.
bool moves_tokens(const Workload& workload) {
    const Pair* pair = workload.pair();
    const bool exchanges = pair != nullptr && pair->collective == CollectiveKind::all_to_all &&
                           pair->order != Order::independent;
    return gathers_rows(workload) || reduces(workload) || exchanges;
}
bool produces_first(const Workload& workload) {
    return workload.pair() != nullptr && workload.pair()->order == Order::gemm_first &&
           !gathers_results(workload);
}
bool independent(const Workload& workload) {
    return workload.pair() != nullptr && workload.pair()->order == Order::independent;
}

/// One of schedules() by another name. The summary says where its source differs from it.
struct Definition {
    std::string name;
    std::string summary;
    std::string base;
    Json defaults;
    bool (*handles)(const Workload&);
};

const std::vector<Definition>& definitions() {
    static const std::vector<Definition> all{
        {"te_ring_exchange",
         "Transformer Engine userbuffers, ring exchange: each of P-1 steps multiplies a shard and sends it "
         "to "
         "the next rank by copy engines (ROCm/TransformerEngine comm_gemm_overlap.h, without 'aggregate').",
         "ring_chunked",
         {{"chunks", 1}, {"agent", "dma"}, {"transfer", "push"}, {"gemm", "shard"}},
         gathers},
        {"te_ring_exchange_rs",
         "Transformer Engine userbuffers, its reduce-scatter of that name: the part for rank r+1+i, then "
         "straight to its owner by copy engines; one sum at the end (comm_gemm_overlap.h).",
         "shard_p2p",
         {{"agent", "dma"}, {"transfer", "push"}},
         reduces},
        {"te_pipeline_rs",
         "Transformer Engine userbuffers, pipelined reduce-scatter: GEMM in 4 chunks, each reduced beside "
         "the "
         "next (comm_gemm_overlap.h; there the last one's kernel gets all SMs).",
         "uniform_fused_1d",
         {{"chunks", 4}, {"agent", "cu"}},
         reduces},
        {"te_bulk",
         "Transformer Engine userbuffers, bulk: a collective beside a GEMM that does not need it.",
         "concurrent",
         {{"agent", "cu"}},
         independent},
        {"te_atomic_gemm",
         "Transformer Engine userbuffers, atomic GEMM: one launch, a counter for each shard instead of P "
         "GEMMs (comm_gemm_overlap.h).",
         "flag_gated",
         {{"chunks", 1}, {"agent", "dma"}},
         gathers_rows_or_reduces},
        {"async_tp",
         "PyTorch async tensor parallelism: a GEMM for each peer's shard, copied one after another by copy "
         "engines (torchtitan's two alternating streams are one for copies and one for GEMMs here).",
         "shard_p2p",
         {{"agent", "dma"}},
         gathers_or_reduces},
        {"flux_ag_gemm",
         "Flux all-gather: copies by copy engines, thread blocks of one GEMM wait for the flags of their "
         "tiles (bytedance/flux docs/design.md).",
         "flag_gated",
         {{"agent", "dma"}},
         gathers_rows},
        {"flux_gemm_rs",
         "Flux reduce-scatter: the GEMM's epilogue writes to the owner as tiles end (bytedance/flux "
         "docs/design.md); here by copy kernels of their own.",
         "flag_gated",
         {{"agent", "cu"}, {"transfer", "push"}},
         reduces},
        {"flashoverlap",
         "FlashOverlap: one unmodified GEMM, a collective for each group of waves as its counter fills "
         "(arXiv "
         "2504.19519); the number of groups is 'chunks'.",
         "flag_gated",
         {{"agent", "cu"}, {"transfer", "push"}},
         produces_first},
        {"triton_distributed",
         "Triton-distributed on a full mesh: one GEMM whose tiles are swizzled to the order in which chunks "
         "of "
         "all peers arrive (arXiv 2504.19442); behind a switch it fetches from one peer at a time.",
         "flag_gated",
         {{"agent", "dma"}},
         gathers_rows},
        {"comet",
         "Comet, and other fused MoE kernels: some blocks of one kernel communicate, the others multiply own "
         "tokens first, then those of other ranks by source as they arrive, or send results as they are "
         "done (arXiv 2502.19811; there layer 1 is cut along N, here along M). 'copy_cus' sets the split.",
         "flag_gated",
         {{"agent", "cu"}, {"transfer", "push"}, {"prelaunch", true}, {"gemm_cus", "rest"}},
         moves_tokens},
        {"iris_producer_consumer",
         "Iris, producer and consumer: a GEMM and beside it a kernel that sends to all peers what it has "
         "finished, on two streams, each with compute units of its own (arXiv 2511.12500; ROCm/iris example "
         "11: 256 and 48 of 304).",
         "flag_gated",
         {{"agent", "cu"}, {"transfer", "push"}, {"prelaunch", true}, {"gemm_cus", "rest"}},
         gathers_results},
        {"iris_wg_specialized",
         "Iris, work-group specialisation: of the work-groups of one kernel some multiply, the others send "
         "tiles as their locks are set (arXiv 2511.12500; ROCm/iris example 10). One launch less than "
         "iris_producer_consumer, which takes no time there.",
         "flag_gated",
         {{"agent", "cu"}, {"transfer", "push"}, {"prelaunch", true}, {"gemm_cus", "rest"}},
         gathers_results},
        {"iris_sequential_fused",
         "Iris, sequential fused: each work-group multiplies a tile and sends it before it takes the next "
         "(arXiv 2511.12500; ROCm/iris example 7); here the compute units that send are taken from the GEMM "
         "while they do.",
         "flag_gated",
         {{"agent", "cu"}, {"transfer", "push"}, {"prelaunch", true}},
         gathers_results},
        {"iris_ag_gemm_pull",
         "Iris, all-gather and GEMM in one kernel whose work-groups load from their peers what they multiply "
         "(arXiv 2511.02168; ROCm/iris example 14, there with K sharded).",
         "flag_gated",
         {{"agent", "cu"}, {"transfer", "pull"}, {"prelaunch", true}},
         gathers_rows},
        {"iris_ag_gemm_push",
         "Iris, all-gather and GEMM: a kernel pushes to an inbox of every peer and signals, the GEMM waits "
         "for the signals (arXiv 2511.02168; ROCm/iris example 14, there with K sharded).",
         "flag_gated",
         {{"agent", "cu"}, {"transfer", "push"}, {"prelaunch", true}},
         gathers_rows},
        {"primus_turbo_ag_gemm",
         "Primus-Turbo all-gather: own shard first, then 2 splits pushed to all peers, one GEMM over what "
         "arrived (AMD-AGI/Primus-Turbo async_tp/ag_gemm_impl.py).",
         "hetero_fused_1d",
         {{"chunks", 2}, {"agent", "dma"}, {"transfer", "push"}},
         gathers},
        {"primus_turbo_gemm_rs",
         "Primus-Turbo reduce-scatter: GEMM in 2 chunks of every rank's band, each pushed to its owners "
         "(AMD-AGI/Primus-Turbo async_tp/gemm_rs_impl.py; there all sums wait for the last chunk).",
         "uniform_fused_1d",
         {{"chunks", 2}, {"agent", "dma"}, {"transfer", "push"}},
         reduces},
        {"domino",
         "Domino: the batch in 2 halves, one all-reduced beside the GEMM of the other (arXiv 2409.15241, row "
         "split); halves are tensors of their own, so nothing is packed.",
         "uniform_fused_1d",
         {{"chunks", 2}, {"agent", "cu"}, {"scatter", false}},
         reduces_everywhere},
    };
    return all;
}

}  // namespace

std::span<const ScheduleEntry> schedules_in_use() {
    static const std::vector<ScheduleEntry> entries = [] {
        std::vector<ScheduleEntry> made;
        for (const Definition& definition : definitions())
            for (const ScheduleEntry& base : schedules())
                if (base.name == definition.base) {
                    ScheduleEntry& entry = made.emplace_back(base);
                    entry.name = definition.name;
                    entry.summary = definition.summary;
                    entry.defaults = definition.defaults;
                    entry.handles = definition.handles;
                }
        return made;
    }();
    return entries;
}

}  // namespace overlap
