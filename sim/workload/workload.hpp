#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/operators.hpp"

namespace overlap {

/// Which of the pair produces what the other needs.
enum class Order { collective_first, gemm_first, independent };
inline const std::array<std::string, 3> order_names{"collective_first", "gemm_first", "independent"};

/// Dimension of the GEMM along which the communicated operand is sharded over the ranks.
enum class ShardDim { m, k };
inline const std::array<std::string, 2> shard_dim_names{"m", "k"};

/// A collective and a GEMM. `gemm` has the dimensions of one GPU, after the gather. What is communicated:
/// collective_first: A[M,K], by bands of rows (shard_dim m) or slabs of K (shard_dim k, "tokens in K");
/// gemm_first: C[M,N], by bands of rows; but before an all_gather ("GEMM + all-scatter", Iris, arXiv
/// 2511.12500) the C[M,N] of one GPU is its shard, and every GPU ends with the P of them, one after another
/// in memory: C[P·M,N] where GPUs have bands of it; a C[M,P·N] whose columns are dealt (column parallel) is
/// left as P blocks, as a library's all-gather leaves it. independent: an operand of the size that
/// collective_first or (where that isn't possible) gemm_first would send, of nobody's concern to the GEMM.
struct Pair {
    CollectiveKind collective = CollectiveKind::all_gather;
    GemmShape gemm;
    Order order = Order::collective_first;
    ShardDim shard_dim = ShardDim::m;

    /// An all_gather of what the GEMMs produce: each GPU's C is a shard, and it computes no other.
    bool gathers_results() const {
        return order == Order::gemm_first && collective == CollectiveKind::all_gather;
    }
    /// The whole communicated operand: gathered by all_gather, and sent by each rank in the other three.
    Bytes operand(int ranks) const;
    DType operand_type() const;

private:
    bool sends_c() const;
};

struct CollectiveWork {
    CollectiveKind kind = CollectiveKind::all_gather;
    Bytes operand;  ///< whole: gathered by all_gather, and sent by each rank in the other three
    DType dtype = DType::bf16;
};
struct StreamingWork {
    Bytes read, written;
};
/// Sum of `parts` operands of `bytes` each.
struct ReductionWork {
    Bytes bytes;
    int parts = 2;
};

/// One operator of a list, executed by every rank.
struct Operator {
    std::string name;
    std::variant<GemmShape, CollectiveWork, StreamingWork, ReductionWork> work;
    std::vector<std::size_t> needs;  ///< operators, earlier in the list, whose result it reads
};

/// What is to be computed: a pair, or a list of operators with the data each needs.
struct Workload {
    std::string name;
    std::string description;
    std::variant<Pair, std::vector<Operator>> content;

    const Pair* pair() const { return std::get_if<Pair>(&content); }
    /// "all_gather > gemm", "gemm > reduce_scatter", "gemm | all_gather" or "operators".
    std::string form() const;
};

/// Contract: `config` is a workload file or the "workload" object of a run config (configs/schema). Throws
/// UserError.
Workload read_workload(ConfigObject config);
/// The JSON that read_workload reads back to an equal workload.
Json to_json(const Workload& workload);

}  // namespace overlap
