#include "sim/calibrate/fits/kernel_priors.hpp"

namespace overlap {
namespace {

// Starts of the searches, which the tables then move: estimates. Families of fold 0 were not looked at when they
// were chosen.
constexpr double products_of_block = 4.0 * 128 * 128 * 128;  // FLOPs of 128 queries and keys at head_dim 128

const GemmParameters& gemm_of(const std::string& format, const Calibration& gemms) {
    return gemms.gemm_for(format.starts_with("fp8")   ? DType::fp8
                          : format.starts_with("fp4") ? DType::fp4
                                                      : DType::bf16);
}

}  // namespace

// One value for all formats: softmax limits fp8 too, so its blocks are hardly faster than those of bf16.
KernelPrior<PrefillParameters> prefill_prior(const KernelSource& source, const Calibration& gemms) {
    const GemmParameters& gemm = gemms.gemm_for(DType::bf16);
    PrefillParameters p;
    p.compute_units = gemm.compute_units;
    p.launch = microseconds(10);
    p.block = microseconds(0.6);
    p.block_dim = Flops(products_of_block) / (gemm.peak_rate * (1 / gemm.compute_units));
    p.tile = microseconds(0.1);
    p.tile_blocks = 3;
    p.short_block = 0.5;
    p.query = p.cache = 0.5 * gemm.memory.hbm;  // rotation and attention each read them
    p.overlap_exponent = 1.4;
    p.sustained_slowdown = 0.05;
    p.sustained_time = microseconds(30'000);
    return {p, source.prior_spread, "datasheet"};
}

KernelPrior<DecodeParameters> decode_prior(const KernelSource& source, const Calibration& gemms) {
    const GemmParameters& gemm = gemms.gemm_for(DType::bf16);
    DecodeParameters p;
    p.compute_units = gemm.compute_units;
    p.grouped_from = source.grouped_from;
    p.grouped_to = source.grouped_to;
    p.launch = microseconds(6);
    p.hbm = gemm.memory.hbm;
    p.overlap_exponent = 3;
    p.least_part = 200;
    p.tensor = {.tile = microseconds(1),
                .keys = microseconds(0.5),
                .chain = microseconds(8),
                .merge = microseconds(3),
                .tile_group = microseconds(0.7),
                .keys_group = microseconds(1.5),
                .occupancy = 1.2,
                .most_part = 1500};
    p.vector = {.tile = microseconds(1.2),
                .keys = microseconds(8.5),
                .chain = microseconds(7),
                .merge = microseconds(10),
                .occupancy = 1.4,
                .most_part = 14'000};
    return {p, 2, "compute units: datasheet; grouped: " + source.grouped_source};
}

KernelPrior<MoeParameters> moe_prior(const std::string& format, const Calibration& gemms) {
    const GemmParameters& gemm = gemm_of(format, gemms);
    MoeParameters p;
    p.compute_units = gemm.compute_units;
    p.launch = microseconds(25);
    p.peak_rate = gemm.peak_rate;
    p.efficiency_16 = 0.15;
    p.efficiency_32 = 0.3;
    p.efficiency_64 = 0.55;
    p.efficiency_128 = 0.9;
    p.efficiency_256 = 1;
    p.k_fixed = 300;
    p.tail = 1;
    p.hbm = gemm.memory.hbm;
    p.overlap_exponent = 2.5;
    p.stream = 0.5 * gemm.memory.hbm;
    p.expert = microseconds(0.02);
    return {p, 2, "datasheet"};
}

KernelPrior<ExchangeParameters> exchange_prior(const std::string& kernel) {
    const bool combine = kernel == "deepep_combine";
    ExchangeParameters p;
    p.nic = gigabytes_per_second(50);
    p.launch = microseconds(15);
    p.expert = microseconds(0.01);
    p.start = gigabytes_per_second(2);
    p.start_exponent = 1;
    p.copy = microseconds(0.05);
    p.unit = gigabytes_per_second(40);
    p.own = gigabytes_per_second(20);
    p.token = microseconds(0.1);
    p.node = gigabytes_per_second(combine ? 5.1 : 9.7);  // as the rows of two nodes have it
    p.link = gigabytes_per_second(350);
    p.link_exponent = 3;
    return {p, 3, "data sheet of ConnectX-7: 400 Gb/s",
            combine || kernel == "deepep_dispatch" ? "node_GBps_per_cu" : ""};
}

}  // namespace overlap
