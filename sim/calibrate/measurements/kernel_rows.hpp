#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "models/attention_model.hpp"
#include "models/expert_exchange.hpp"
#include "models/moe_model.hpp"
#include "sim/core/csv_table.hpp"

namespace overlap {

/// An all-to-all of experts, and among which GPUs.
struct ExchangeCall {
    ExpertExchange exchange;
    ExchangeGroup group;
};

/// One row of a table of fused kernels, and how it is priced.
struct KernelRow {
    std::variant<AttentionCall, MoeShape, GemmShape, ExchangeCall> work;
    ExpertRows rows = {};  ///< of an MoE layer or a grouped GEMM
    Seconds time = {};     ///< measured; 0 where the table has no column of times
    /// Of attention: measured time of the backward pass; of a dispatch: of the combine. 0 where the table has none
    Seconds backward = {};
    Seconds launch = {};      ///< of a grouped GEMM: launch of the device's GEMMs, which is part of its time
    std::string format = {};  ///< key of its parameters in a calibration
    std::string family = {};  ///< heads, kv_heads, head_dim; hidden, inter, top k, experts; …
    int fold = 0;             ///< of the family, 0 to 3
    std::string shape = {};   ///< of MoE: all columns but the distribution
};

/// What the columns of a table describe.
enum class KernelTableKind { prefill, decode, moe, exchange, grouped };
/// Group of a calibration that a table fits, as an index of kernel_groups: tables of grouped GEMMs alone fit MoE.
constexpr std::size_t kernel_group_of(KernelTableKind kind) {
    return static_cast<std::size_t>(kind == KernelTableKind::grouped ? KernelTableKind::moe : kind);
}
/// Prefill: dtype, kv_dtype, batch, tokens, heads, kv_heads, head_dim; or head_dim_qk, head_dim_v and causal (True,
/// False) instead of kv_dtype and head_dim. Decode: kv_dtype, batch, context, heads, kv_heads, head_dim. MoE: kernel,
/// dtype, tokens, hidden, inter, topk, experts, tp, ep, distribution ("balanced", "power_law_1.01"). Grouped GEMMs:
/// dtype, groups, M_per_group, N, K. All-to-alls by DeepEP: nodes (of 8 GPUs), hidden, top_k, experts, tokens of a GPU
/// and, of the normal kernels, sms. None if the columns are not of these. Throws UserError where one is missing.
std::optional<KernelTableKind> kernel_table_of(const CsvTable& table);

/// Reads rows; keeps how loads divide among experts, because a table has the same loads many times.
class KernelRowReader {
public:
    /// Times are in the column us, or in fwd_us and (attention) bwd_us, or in fwd_tflops and bwd_tflops (attention,
    /// whose FLOPs are those of its products, half of them under a causal mask). Throws UserError "file:line: …" for
    /// a value that is not allowed.
    KernelRow read(const CsvTable& table, std::size_t row, KernelTableKind kind);

private:
    void count_rows(KernelRow& row);
    std::map<std::array<double, 6>, ExpertRows> known_;
};

inline constexpr int kernel_folds = 4;
/// Fold of a family: FNV-1a of its numbers.
int kernel_fold(std::span<const std::int64_t> family);

}  // namespace overlap
