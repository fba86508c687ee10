#include "models/moe_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/gemm_tiling.hpp"

namespace overlap {
namespace {
constexpr std::array<double, 5> moe_tile_rows{16, 32, 64, 128, 256};
constexpr double moe_tile_columns = 128;
constexpr double moe_activation_bytes = 2;  // bf16, whatever the operands are quantised to
}  // namespace

std::span<const Field<MoeParameters>> MoeParameters::fields() {
    using P = MoeParameters;
    constexpr Range efficiency{0.001, 3};
    // clang-format off
    static const std::array rows{
        field<&P::launch>("launch_us", "Kernel starts of a fused MoE layer, routing and sort of few tokens."),
        field<&P::peak_rate>("peak_TFLOPS", "Rate of all units together with the best tile and deep K.").in({1e-3, 1e7}),
        field<&P::efficiency_16>("efficiency_16", "Main-loop rate with tiles of 16 rows, as a share of peak_TFLOPS.").in(efficiency),
        field<&P::efficiency_32>("efficiency_32", "The same with 32 rows.").in(efficiency),
        field<&P::efficiency_64>("efficiency_64", "The same with 64 rows.").in(efficiency),
        field<&P::efficiency_128>("efficiency_128", "The same with 128 rows.").in(efficiency),
        field<&P::efficiency_256>("efficiency_256", "The same with 256 rows.").in(efficiency),
        field<&P::k_fixed>("k_fixed", "Start and end of a tile, as elements of K.").in({0.01, 1e5}),
        field<&P::tail>("tail", "Waves that the last, partial wave costs on top of the mean.").in({0.001, 100}),
        field<&P::hbm>("hbm_GBps", "Achieved memory rate of the weights."),
        field<&P::overlap_exponent>("overlap_exponent", "p in (compute^p + memory^p)^(1/p).").in({1, 100}),
        field<&P::stream>("stream_GBps", "Rate of the bytes of sort, activation, quantisation and sum."),
        field<&P::expert>("expert_us", "Time for each expert of the GPU, whether or not it has rows.")};
    // clang-format on
    return rows;
}

std::span<const Field<MoeParameters>> MoeParameters::fixed_fields() {
    static const std::array rows{
        field<&MoeParameters::compute_units>("compute_units", "Compute units (CUs or SMs).")
            .in({1, 100'000})};
    return rows;
}

ExpertRows counted(std::span<const std::int64_t> rows) {
    ExpertRows result;
    result.experts = static_cast<double>(rows.size());
    for (const std::int64_t of_one : rows) {
        if (of_one == 0) continue;
        result.rows += static_cast<double>(of_one);
        result.active += 1;
        for (std::size_t i = 0; i < moe_tile_rows.size(); ++i)
            result.tiles[i] += std::ceil(static_cast<double>(of_one) / moe_tile_rows[i]);
    }
    return result;
}

ExpertRows rows_of(const GemmShape& grouped) {
    const double tokens =
        static_cast<double>(grouped.m) * grouped.group_ranks / static_cast<double>(grouped.group_choices);
    return counted(expert_rows(
        {tokens, grouped.group_choices, static_cast<std::int64_t>(grouped.groups) * grouped.group_ranks,
         grouped.group_ranks, grouped.imbalance, grouped.group_routing == GroupRouting::random}));
}

GroupedEstimate estimate_grouped(const ExpertRows& rows, double n, double k, const GroupedBytes& bytes,
                                 const MoeParameters& p) {
    const std::array<double, 5> efficiency{p.efficiency_16, p.efficiency_32, p.efficiency_64,
                                           p.efficiency_128, p.efficiency_256};
    GroupedEstimate best;
    double compute = 0;
    for (std::size_t i = 0; i < moe_tile_rows.size(); ++i) {
        const double tile = 2 * moe_tile_rows[i] * moe_tile_columns * (k + p.k_fixed) /
                            (p.peak_rate.si() / p.compute_units * efficiency[i]);
        const double tiles = rows.tiles[i] * std::ceil(n / moe_tile_columns), waves = tiles / p.compute_units;
        const double time = tile * (waves > 1 ? waves + p.tail : 1);
        if (i > 0 && time >= compute) continue;
        compute = time;
        best.tiles = std::max(tiles, 1.0);
        best.waves = best.tiles / p.compute_units;
    }
    best.hbm_traffic =
        Bytes(rows.active * n * k * bytes.weight +
              rows.rows * (n * moe_activation_bytes + k * std::min(bytes.operand, moe_activation_bytes)));
    const double memory = best.hbm_traffic.si() / p.hbm.si();
    best.body = Seconds(gemm_detail::smooth_max(compute, memory, p.overlap_exponent));
    return best;
}

Seconds estimate_moe(const MoeShape& shape, const ExpertRows& rows, const MoeParameters& p) {
    const double element = weight_bytes(shape.format), parts = shape.gated ? 2 : 1;
    const GroupedBytes bytes{element, element};
    const Seconds up = estimate_grouped(rows, parts * shape.inter, shape.hidden, bytes, p).body;
    const Seconds down = estimate_grouped(rows, shape.hidden, shape.inter, bytes, p).body;
    // Rows are written sorted and read for the sum; the activation reads and writes; tokens are read.
    const Bytes streamed(moe_activation_bytes *
                         (2 * rows.rows * shape.hidden + rows.rows * (parts + 1) * shape.inter +
                          shape.load.tokens * shape.hidden));
    return p.launch + up + down + streamed / p.stream + rows.experts * p.expert;
}

double weight_bytes(const std::string& format) {
    if (format.starts_with("fp4")) return 0.5 + 1.0 / 16;  // a scale of 8 bits for 16 weights (NVFP4)
    return format.starts_with("fp8") ? 1 : 2;
}

}  // namespace overlap
