#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/operators.hpp"

namespace overlap {

/// Whether the collective or the GEMM comes first.
enum class Order { collective_first, gemm_first, independent };
inline const std::array<std::string, 3> order_names{"collective_first", "gemm_first", "independent"};

/// Dimension of the GEMM along which the communicated operand is sharded over the ranks.
enum class ShardDim { m, k };
inline const std::array<std::string, 2> shard_dim_names{"m", "k"};

/// A collective and a GEMM. `gemm` has the dimensions of one GPU, after the gather. The communicated operand:
/// - collective_first: A[M,K], in bands of rows (shard_dim m) or slabs of K (shard_dim k, "tokens in K").
/// - gemm_first: C[M,N], in bands of rows. Before an all_gather ("GEMM + all-scatter", Iris, arXiv
///   2511.12500) the C[M,N] of one GPU is its shard, and every GPU ends with all P shards one after another
///   in memory: C[P·M,N] if GPUs have bands of rows. If C[M,P·N] is split by columns (column parallel), it
///   remains as P blocks, as a library's all-gather leaves it.
/// - independent: an operand of the size that collective_first (or, if impossible, gemm_first) would send.
///   The GEMM does not use it.
struct Pair {
    CollectiveKind collective = CollectiveKind::all_gather;
    GemmShape gemm;
    Order order = Order::collective_first;
    ShardDim shard_dim = ShardDim::m;

    /// An all_gather of GEMM results: each GPU's C is one shard, and the GPU computes no other.
    bool gathers_results() const {
        return order == Order::gemm_first && collective == CollectiveKind::all_gather;
    }
    /// The whole communicated operand: the result of an all_gather, or what each rank sends
    /// in the other collectives.
    Bytes operand(int ranks) const;
    DType operand_type() const;
    friend bool operator==(const Pair&, const Pair&) = default;

private:
    bool sends_c() const;
};

struct CollectiveWork {
    CollectiveKind kind = CollectiveKind::all_gather;
    Bytes operand;  ///< whole operand, as in Pair::operand
    DType dtype = DType::bf16;
    RankGroup group = {};          ///< `operand` is that of one group
    ExpertExchange exchange = {};  ///< with tokens: an all-to-all by DeepEP
    friend bool operator==(const CollectiveWork&, const CollectiveWork&) = default;
};
struct StreamingWork {
    Bytes read, written;
    Flops flops = {};  ///< arithmetic on tensor cores, as of fused attention
    DType dtype = DType::bf16;
    Seconds time = {};  ///< above 0: as recorded on another machine, instead of by bytes and FLOPs
    AttentionCall attention =
        {};  ///< of fused attention: its kernel is priced by this shape where a fit knows it
    friend bool operator==(const StreamingWork&, const StreamingWork&) = default;
};
/// Sum of `parts` operands of `bytes` each.
struct ReductionWork {
    Bytes bytes;
    int parts = 2;
    friend bool operator==(const ReductionWork&, const ReductionWork&) = default;
};

/// Messages of `bytes` each: message i goes from rank from[i] to rank to[i].
struct SendWork {
    Bytes bytes;
    std::vector<std::int64_t> from, to;  ///< of one length
    friend bool operator==(const SendWork&, const SendWork&) = default;
};

/// What a recording says of an operator, beside its work.
struct Recorded {
    Seconds time = {};  ///< above 0: what it took, beside all that ran then, and takes where it runs whole
    std::optional<Seconds> gap =
        {};             ///< from when it could begin until it did; none: a launch's time of the machine
    Seconds host = {};  ///< of the host, from its call before until the one that enqueued the operator
    std::vector<std::size_t> host_needs =
        {};  ///< earlier operators whose end the host waited for before that call

    bool is_taken() const { return time > Seconds(); }
    bool calls_host() const { return host > Seconds() || !host_needs.empty(); }
    friend bool operator==(const Recorded&, const Recorded&) = default;
};

/// One operator of a list. Every rank executes it, but for sends, and where `ranks` names some.
struct Operator {
    std::string name;
    std::variant<GemmShape, CollectiveWork, StreamingWork, ReductionWork, SendWork> work;
    /// Earlier operators whose results it reads. A rank waits for what it executed of them, or sent, or received;
    /// a message waits for them at its sender.
    std::vector<std::size_t> needs;
    /// Ascending; empty: all. Of a collective those that exchange, which its group has, too.
    std::vector<std::int64_t> ranks = {};
    /// The stream that it is enqueued on; empty: that of what computes, and for transfers streams of their own.
    std::string stream = {};
    bool high_priority = false;  ///< of its stream
    Recorded recorded = {};      ///< of a list that sim import made of a trace

    bool is_on(std::int64_t rank) const { return ranks.empty() || std::ranges::binary_search(ranks, rank); }
    /// Whether some ranks execute the operator and others do not, or do other work.
    bool is_of_some_ranks() const { return !ranks.empty() || std::holds_alternative<SendWork>(work); }
    friend bool operator==(const Operator&, const Operator&) = default;
};

/// When the operators of a list start. program: each stream runs them in the order of the list, in which a program
/// enqueued them. data: a stream that is free runs, of its operators whose data are there, the first of the list.
enum class ListOrder { program, data };
inline const std::array<std::string, 2> list_order_names{"program", "data"};

/// The work: a pair, or a list of operators with their dependencies.
struct Workload {
    std::string name;
    std::string description;
    std::variant<Pair, std::vector<Operator>> content;
    std::int64_t ranks = 0;  ///< number of GPUs that it is for; 0: any
    ListOrder list_order = ListOrder::program;

    const Pair* pair() const { return std::get_if<Pair>(&content); }
    /// The list; of a pair its two operators on this many GPUs.
    std::vector<Operator> operators(int gpus) const;
    /// In the order of the list, but those that take their recorded time.
    std::vector<GemmShape> gemms() const;
    /// "all_gather > gemm", "gemm > reduce_scatter", "gemm | all_gather" or "operators".
    std::string form() const;
};

/// Contract: `config` is a workload file or the "workload" object of a run config
/// (configs/schema). Throws UserError.
Workload read_workload(ConfigObject config);
/// JSON that read_workload reads back to an equal workload.
Json to_json(const Workload& workload);

/// Paths of the keys of a pair: "collective", "gemm.m", …
std::vector<std::string> pair_paths();

/// JSON schema of a workload file, or of the "workload" of a run config, which leaves out more.
Json workload_schema(bool in_run_config);

}  // namespace overlap
