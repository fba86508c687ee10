#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "models/attention_model.hpp"
#include "models/moe_model.hpp"
#include "sim/core/csv_table.hpp"

namespace overlap {

/// One row of a table of fused kernels, and how it is priced.
struct KernelRow {
    std::variant<AttentionCall, MoeShape> work;
    ExpertRows rows = {};     ///< of an MoE layer
    Seconds time = {};        ///< measured; 0 where the table has no column `us`
    std::string format = {};  ///< key of its parameters in a calibration
    std::string family = {};  ///< heads, kv_heads, head_dim; or hidden, inter, top k, experts
    int fold = 0;             ///< of the family, 0 to 3
    std::string shape = {};   ///< of MoE: all columns but the distribution
};

/// What the columns of a table describe.
enum class KernelTableKind { prefill, decode, moe };
/// Prefill: dtype, kv_dtype, batch, tokens, heads, kv_heads, head_dim. Decode: kv_dtype, batch, context, heads, kv_heads,
/// head_dim. MoE: kernel, dtype, tokens, hidden, inter, topk, experts, tp, ep, distribution ("balanced",
/// "power_law_1.01"). None if the columns are not of these. Throws UserError where they are of two.
std::optional<KernelTableKind> kernel_table_of(const CsvTable& table);

/// Reads rows; keeps how loads divide among experts, because a table has the same loads many times.
class KernelRowReader {
public:
    /// Throws UserError "file:line: …" for a value that is not allowed.
    KernelRow read(const CsvTable& table, std::size_t row, KernelTableKind kind);

private:
    void count_rows(KernelRow& row);
    std::map<std::array<double, 5>, ExpertRows> known_;
};

inline constexpr int kernel_folds = 4;
/// Fold of a family: FNV-1a of its numbers.
int kernel_fold(std::span<const std::int64_t> family);

}  // namespace overlap
