#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/dtype.hpp"
#include "sim/core/units.hpp"

namespace overlap {

/// How rows go to the groups of a grouped GEMM: as evenly as whole rows can, or each token to groups of its own at random.
enum class GroupRouting : std::uint8_t { even, random };
inline const std::array<std::string, 2> group_routing_names{"even", "random"};

/// C[M,N] = A[M,K] · B[K,N], row-major; dimensions of one GPU. A batch is several such GEMMs, each with its
/// own operands, in one kernel.
struct GemmShape {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    DType dtype = DType::bf16;
    bool accumulate = false;  ///< C += A·B: C is read as well as written
    std::int64_t batch = 1;   ///< above 1 only in lists of operators
    /// Above 1: a grouped GEMM, one kernel in which the M rows of A are divided among this many matrices B (the
    /// experts of one GPU). A part of its rows is a grouped GEMM of the same groups.
    std::int32_t groups = 1;
    std::int32_t group_ranks = 1;    ///< GPUs with `groups` groups each, over which all rows are spread (EP)
    std::int32_t group_choices = 1;  ///< groups that each token goes to (top k)
    GroupRouting group_routing = GroupRouting::even;
    double imbalance =
        0;  ///< exponent of a power law of rows over groups instead (models/expert_rows.hpp); 0: none
    double weight_bits = 0;  ///< of an element of B in memory, with its share of scales; 0: those of dtype

    Flops flops() const {
        return Flops(2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
                     static_cast<double>(k));
    }
    friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

/// Fused attention of one GPU's heads: softmax(Q·Kᵀ)·V of each sequence.
enum class AttentionKind : std::uint8_t {
    prefill,  ///< `tokens` queries and as many keys a sequence
    decode,   ///< one query a sequence, `tokens` cached keys
    backward  ///< gradients of Q, K and V of a prefill
};
inline const std::array<std::string, 3> attention_kind_names{"prefill", "decode", "backward"};
/// Whether a query sees the keys before its own place only, or all of them.
enum class AttentionMask : std::uint8_t { causal, none };
inline const std::array<std::string, 2> attention_mask_names{"causal", "none"};
struct AttentionCall {
    std::int32_t sequences = 0;  ///< 0: no attention
    std::int32_t tokens = 0;
    std::int32_t window = 0;  ///< a query sees at most so many keys; 0: all
    std::int16_t heads = 0, kv_heads = 0, head_dim = 0;
    std::int16_t value_dim = 0;  ///< 0: head_dim
    AttentionKind kind = AttentionKind::prefill;
    AttentionMask mask = AttentionMask::causal;
    DType dtype = DType::bf16, kv_dtype = DType::bf16;  ///< of the products; of the cached keys and values

    double mean_dim() const { return value_dim == 0 ? head_dim : (head_dim + value_dim) / 2.0; }
    friend bool operator==(const AttentionCall&, const AttentionCall&) = default;
};

/// "8192x2560x8192" as M, N, K, each from 1 to 1e9; `where` names the place in errors.
GemmShape parse_shape(const std::string& text, const std::string& where);
/// M, N, K in that form.
std::string shape_name(const GemmShape& shape);

/// "4096", "64KB", "64MB", "1.5GB" (decimal), "64KiB", "1GiB" (binary). `where` names the flag in errors.
Bytes parse_size(const std::string& text, const std::string& where);

/// Bytes of a dense rows × columns matrix.
inline Bytes matrix_size(std::int64_t rows, std::int64_t columns, DType dtype) {
    return static_cast<double>(rows) * static_cast<double>(columns) * element_size(dtype);
}

/// Which units a kernel gets that may use only some of a GPU's. even: of each die and shader engine as equal a number
/// as there is, which reserves the others evenly. low_bits: those of the same number of low bits in each of as many
/// blocks of a mask as there are dies (ROC_GLOBAL_CU_MASK), which leaves engines unequal numbers.
enum class CuMask { even, low_bits };
inline const std::array<std::string, 2> cu_mask_names{"even", "low_bits"};

/// What is exchanged among the P ranks (MPI's meaning).
enum class CollectiveKind { all_gather, reduce_scatter, all_reduce, all_to_all };

inline const std::array<std::string, 4> collective_names{"all_gather", "reduce_scatter", "all_reduce",
                                                         "all_to_all"};

/// Whose kernel does a whole collective: the vendor's library, one that was made for all-reduces of inference (names as in
/// `collective_algorithms` and in device files), or DeepEP (ExpertExchange).
enum class CollectiveKernel { library, one_shot, two_shot, tensorrt_llm, deepep };

inline const std::array<std::string, 5> collective_kernel_names{"library", "one_shot", "two_shot",
                                                                "tensorrt_llm", "deepep"};

/// Those that are no vendor's library and only do all-reduces.
inline constexpr std::array all_reduce_kernels{CollectiveKernel::one_shot, CollectiveKernel::two_shot,
                                               CollectiveKernel::tensorrt_llm};

inline const std::string& name_of(CollectiveKernel kernel) {
    return collective_kernel_names[static_cast<std::size_t>(kernel)];
}

inline const std::string& name_of(CollectiveKind kind) {
    return collective_names[static_cast<std::size_t>(kind)];
}

enum class ExchangePhase : std::uint8_t { dispatch, combine };
inline const std::array<std::string, 2> exchange_phase_names{"dispatch", "combine"};

/// An all-to-all of expert parallelism by DeepEP's kernels (github.com/deepseek-ai/DeepEP): dispatch sends tokens to the
/// GPUs of their experts, combine sends the results back and adds them. Normal kernels send a token once to each node and
/// once to each GPU, low-latency kernels once to each expert.
struct ExpertExchange {
    std::int64_t tokens = 0;                ///< of one GPU; 0: another all-to-all
    std::int32_t hidden = 0;                ///< numbers of a token
    std::int32_t choices = 1, experts = 1;  ///< experts of a token (top k), and of all GPUs
    std::int16_t sms = 0;                   ///< of the normal kernels; 0: the low-latency kernels
    ExchangePhase phase = ExchangePhase::dispatch;
    DType dtype = DType::bf16;  ///< of what is sent; fp8 has a scale of 4 bytes for 128 numbers

    bool is_low_latency() const { return sms == 0; }
    Bytes token_bytes() const {
        return hidden * (element_size(dtype) + Bytes(dtype == DType::fp8 ? 4.0 / 128 : 0));
    }
    /// Times that a token is sent, on average: to distinct GPUs, nodes, ... of so many, or to each of its experts.
    double copies_to(int groups) const;
    friend bool operator==(const ExpertExchange&, const ExpertExchange&) = default;
};

/// The GPUs that a collective joins: all of them, or groups of `size`, of which each is `stride` ranks behind the one
/// before (ranks 0, stride, 2 stride, ... are the first group). Groups share no GPU and exchange at the same time, like
/// the process groups of one dimension of a device mesh.
struct RankGroup {
    int size = 0;  ///< 0: all GPUs
    int stride = 1;
    /// Not null: one group, of these ranks, ascending. The other GPUs are in none.
    std::shared_ptr<const std::vector<int>> ranks = {};

    static RankGroup of(std::vector<int> ranks) {
        const int size = static_cast<int>(ranks.size());
        return {size, 1, std::make_shared<const std::vector<int>>(std::move(ranks))};
    }

    bool is_all() const { return size == 0; }
    /// GPUs that one collective joins, of `gpus` in all.
    int members(int gpus) const { return is_all() ? gpus : size; }
    /// Lowest rank of the group that `rank` is in.
    int first(int rank) const {
        if (ranks != nullptr) return ranks->front();
        return is_all() ? 0 : rank / (size * stride) * (size * stride) + rank % stride;
    }
    /// Rank number `place` of the group whose lowest rank is `first`.
    int member(int first, int place) const {
        return ranks != nullptr ? (*ranks)[static_cast<std::size_t>(place)] : first + place * stride;
    }
    /// Whether two ranks are in one group.
    bool joins(int one, int other) const {
        const auto is_in = [&](int rank) { return std::binary_search(ranks->begin(), ranks->end(), rank); };
        return ranks != nullptr ? is_in(one) && is_in(other) : first(one) == first(other);
    }
    friend bool operator==(const RankGroup& a, const RankGroup& b) {
        return a.size == b.size && a.stride == b.stride &&
               (a.ranks == b.ranks || (a.ranks && b.ranks && *a.ranks == *b.ranks));
    }
};

}  // namespace overlap
