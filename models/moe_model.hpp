#pragma once

#include <span>
#include <string>

#include "models/expert_rows.hpp"
#include "sim/core/fields.hpp"
#include "sim/core/operators.hpp"

namespace overlap {

/// Parameters of a device's grouped GEMMs and fused MoE kernels for one number format. What each means stands in
/// `fields()`.
struct MoeParameters {
    double compute_units = 1;
    Seconds launch;
    FlopsPerSecond peak_rate;
    double efficiency_16 = 0.2, efficiency_32 = 0.3, efficiency_64 = 0.5, efficiency_128 = 0.9,
           efficiency_256 = 1;
    double k_fixed = 0;
    double tail = 0;
    BytesPerSecond hbm;
    double overlap_exponent = 3;
    BytesPerSecond stream;
    Seconds expert;

    static std::span<const Field<MoeParameters>> fields();
    static std::span<const Field<MoeParameters>> fixed_fields();
    friend bool operator==(const MoeParameters&, const MoeParameters&) = default;
};

/// Rows of a GPU's experts as the formulas need them.
struct ExpertRows {
    double rows = 0, active = 0, experts = 0;
    std::array<double, 5> tiles{};  ///< Σ over experts of ⌈rows / 16⌉, … 32, 64, 128, 256
};
ExpertRows counted(std::span<const std::int64_t> rows);
ExpertRows rows_of(const GemmShape& grouped);

/// Bytes of an element of the weights, with its scales, and of the operands.
struct GroupedBytes {
    double weight = 2, operand = 2;
};

struct GroupedEstimate {
    Seconds body;
    Bytes hbm_traffic;
    double tiles = 1, waves = 1;  ///< of the chosen tile height; waves = tiles / compute units
};

/// C[rows of e, N] = A[rows of e, K] · B_e[K, N] for all experts e of a GPU, in one kernel.
///   tile    = 2·tm·128·(K + k_fixed) / (peak/units · efficiency of tm)
///   compute = tile · (max(waves, 1) + tail, where there is more than one wave), tiles = Σ ⌈rows/tm⌉ · ⌈N/128⌉
///   memory  = (weights of the experts that have rows + A + C) / rate
///   body    = (compute^p + memory^p)^(1/p), for the fastest tm of 16, 32, 64, 128, 256
/// Ignored: L2 reuse, clusters, power.
GroupedEstimate estimate_grouped(const ExpertRows& rows, double n, double k, const GroupedBytes& bytes,
                                 const MoeParameters& parameters);

/// A fused MoE forward of one GPU: sort, grouped GEMM up (and gate), activation, grouped GEMM down, weighted sum.
struct MoeShape {
    ExpertLoad load;
    double hidden = 1, inter = 1;  ///< inter: of the GPU (divided by TP)
    bool gated = true;
    std::string format = "bf16";  ///< "bf16", "fp8", "fp8_block", "fp4", "fp4_min_latency"
};
/// launch + both grouped GEMMs + bytes of sort, activation and sum / stream rate + expert time · experts of the GPU.
/// Mean errors on shapes (hidden, inter, top k, experts) that no fit saw: configs/calibrations. The GPU that is priced
/// is the busiest one.
Seconds estimate_moe(const MoeShape& shape, const ExpertRows& rows, const MoeParameters& parameters);

/// Bytes of a weight of a format, with its block scales.
double weight_bytes(const std::string& format);

}  // namespace overlap
