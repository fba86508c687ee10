#include "models/calibration/recipes/gemm_recipes.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace overlap {
namespace {

const std::string aiter =
    "github.com/ROCm/aiter commit e4048607a535 (2026-08-22), tuner output, kernel time, rotated buffers";
const std::string aiconfigurator =
    "github.com/ai-dynamo/aiconfigurator commit 095f58a51 (2026-08-21), TensorRT-LLM 1.3.0rc20 torch linear";
const std::string hipblaslt =
    "github.com/ROCm/hipBLASLt commit 7d9fb68 (2024-10-25), Tensile logic, speed at tuning time";

const std::string composable_kernel = "Composable Kernel, block-scaled (aiter)";
const std::string tensile = "hipBLASLt (Tensile logic)";

struct Hardware {
    double units, peak_TFLOPS, peak_spread, hbm_GBps, cache_MB;
    std::int64_t k_step;
    std::vector<std::pair<std::int64_t, std::int64_t>> tiles;
    /// 0 if the table shows no such loss: held-out errors are the same without it
    double stride_loss_per_kB = 0;
};

/// One prior for all devices; only hardware properties differ. Values are rough estimates: kernel floor of
/// 2.5–7 µs and achieved HBM rates as published, 60 units to saturate HBM as in AMD's Origami model, tile
/// efficiency falling with area^0.15, a power cap that costs 10 % in the long run.
GemmPrior prior_for(const Hardware& hardware) {
    struct Belief {
        double value, spread;
    };
    const std::vector<Belief> beliefs{
        {4, 1.5},                                      // launch_us
        {0.5, 2},                                      // tile_fixed_us
        {0.5, 2},                                      // tile_epilogue_us
        {hardware.peak_TFLOPS, hardware.peak_spread},  // peak_TFLOPS
        {hardware.stride_loss_per_kB, 2},              // stride_loss_per_kB
        {0.6, 1.5},                                    // tail_floor
        {0.8, 1.3},                                    // partial_floor
        {hardware.hbm_GBps, 1.08},                     // hbm_GBps
        {hardware.hbm_GBps / 60, 2},                   // unit_bandwidth_GBps
        {3, 1.5},                                      // overlap_exponent
        {hardware.cache_MB, 2},                        // reuse_cache_MB
        {3, 2},                                        // split_k_fixed_us
        {3000, 2},                                     // split_k_GBps
        {0.1, 2},                                      // sustained_slowdown
        {4000, 2},                                     // sustained_time_us
    };
    GemmPrior prior;
    prior.start.compute_units = hardware.units;
    prior.start.k_step = hardware.k_step;
    const auto fields = GemmParameters::fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
        fields[i].set(prior.start, beliefs.at(i).value);
        prior.field_spread.push_back(beliefs.at(i).spread);
    }
    for (const auto& [m, n] : hardware.tiles) {
        const double area = static_cast<double>(m * n);
        prior.start.tiles.push_back({m, n, std::min(1.0, std::pow(area / (256.0 * 128.0), 0.15))});
    }
    return prior;
}

const std::vector<std::pair<std::int64_t, std::int64_t>> amd_tiles{
    {256, 256}, {256, 128}, {128, 256}, {128, 128}, {128, 64},
    {64, 128},  {64, 64},   {32, 128},  {32, 64},   {16, 128}};
/// The ten tiles above and sizes between them, in steps of 32 and 64 rows. Times of the MI355X bf16 table
/// have steps where such tiles fill the compute units (6144x2048 and 12288x1024 as 256 tiles of 192x256,
/// 10240x1024 as 256 tiles of 160x256; flydsl in steps of 64x64, 96x64 and 128x64), and are 20 % shorter
/// there than with the ten tiles.
const std::vector<std::pair<std::int64_t, std::int64_t>> fine_amd_tiles{
    {256, 256}, {256, 128}, {128, 256}, {128, 128}, {128, 64},  {64, 128},  {64, 64},   {32, 128}, {32, 64},
    {16, 128},  {192, 256}, {256, 192}, {160, 256}, {256, 160}, {224, 256}, {256, 224}, {96, 128}, {128, 96},
    {96, 64},   {64, 96},   {192, 128}, {128, 192}, {96, 256},  {256, 96},  {256, 64},  {64, 256}};
const std::vector<std::pair<std::int64_t, std::int64_t>> nvidia_tiles{
    {256, 128}, {128, 256}, {192, 128}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};
const std::vector<std::pair<std::int64_t, std::int64_t>> tensile_tiles{
    {256, 256}, {256, 128}, {128, 256}, {128, 128}, {64, 128}, {64, 64}, {32, 64}};

GemmAnchor anchor(std::int64_t m, std::int64_t n, std::int64_t k, double TFLOPS, std::string source) {
    const GemmShape shape{m, n, k, DType::bf16, false};
    return {{shape, shape.flops() / teraflops(TFLOPS), 4.0, {}}, std::move(source)};
}

GemmRecipe aiter_recipe(const std::string& device, DType dtype, const std::string& family,
                        const Hardware& hardware) {
    GemmTableFilter filter{.dtype = dtype, .where = {{"family", family}, {"B", "1"}}, .alignment = 16};
    return {device, dtype, device + "_gemm_aiter.csv", aiter, "MIT", filter, prior_for(hardware), {}, 0, ""};
}

GemmRecipe nvidia_recipe(const std::string& device, double hbm_GBps) {
    GemmTableFilter filter{.dtype = DType::bf16, .where = {}};
    const Hardware hardware{132, 800, 1.3, hbm_GBps, 50, 64, nvidia_tiles};
    return {device,
            DType::bf16,
            device + "_gemm_bf16.csv",
            aiconfigurator,
            "Apache-2.0",
            filter,
            prior_for(hardware),
            {},
            0,
            ""};
}

GemmRecipe tensile_recipe(const std::string& device, DType dtype, std::map<std::string, std::string> where,
                          const Hardware& hardware) {
    where["batch"] = "1";
    GemmTableFilter filter{
        .dtype = dtype, .time_column = "us_calc", .where = std::move(where), .shortest_us = 4};
    return {device, dtype, "hipblaslt_logic_tflops.csv", hipblaslt, "MIT", filter, prior_for(hardware), {},
            0,      ""};
}

std::vector<GemmRecipe> make_recipes() {
    std::vector<GemmRecipe> recipes;
    recipes.push_back(aiter_recipe("mi300x", DType::fp8, "fp8_blockscale",
                                   {304, 950, 1.3, 4200, 256, 128, amd_tiles, 0.015}));
    // In the family N = 4096, K = 2048 the time rises from 305 to 356 us between M = 16384 and 16640, where
    // the source changes from this file to another: 17 %, the ratio of MI325X to MI300X.
    recipes.back().filter.campaign_column = "src_file";
    recipes.back().filter.campaigns = {"model_configs/a8w8_blockscale_tuned_gemm_glm5_1.csv"};
    recipes.back().kernel_library = composable_kernel;
    recipes.back().note =
        "block-scaled fp8 (1x128 by 128x128); per-tensor hipBLASLt fp8 is up to 1.4 times as fast. The table "
        "does not say whether it is MI300X or MI325X; rows of the campaign with a rate of its own may be of "
        "the other";

    recipes.push_back(tensile_recipe("mi300x", DType::bf16, {{"arch", "aquavanjaram"}, {"dtype_code", "BBS"}},
                                     {304, 740, 1.05, 4200, 256, 64, tensile_tiles}));
    recipes.back().anchors = {
        anchor(10240, 15360, 8192, 668, "stas00/ml-engineering MAMF table, MI300X bf16 668 TFLOPS"),
        anchor(4096, 4864, 32896, 708,
               "ROCm blog 'Measuring max-achievable FLOPs, part 2', MI300X bf16 708 TFLOPS"),
    };
    recipes.back().kernel_library = tensile;
    recipes.back().note = "few rows, all small or shallow; the two published large GEMMs set the peak";

    recipes.push_back(
        aiter_recipe("mi355x", DType::bf16, "bf16", {256, 1600, 1.3, 6000, 256, 128, amd_tiles}));
    // The tuner kept the fastest of its libraries; a few `skinny` rows stay in the mixed fit only.
    recipes.back().start_of_libraries = prior_for({256, 1600, 1.3, 6000, 256, 128, fine_amd_tiles});
    recipes.back().filter.column_of_libraries = "lib";
    recipes.back().filter.libraries = {"torch", "asm", "flydsl", "triton", "opus"};
    recipes.back().kernel_library = "mix of hipBLASLt, asm, flydsl, triton and opus (aiter)";
    recipes.back().kernel_libraries = {"hipBLASLt (aiter)", "asm (aiter)", "flydsl (aiter)", "triton (aiter)",
                                       "opus (aiter)"};
    recipes.back().note =
        "rows come from five kernel libraries tuned at different times: this is their mix, for those who do "
        "not know which one runs; gemm_libraries has each alone (torch is hipBLASLt)";
    recipes.push_back(
        aiter_recipe("mi355x", DType::fp8, "fp8_blockscale", {256, 2200, 1.3, 6000, 256, 128, amd_tiles}));
    // The table mixes kernel libraries of different age; the largest of them is one population.
    recipes.back().filter.where["lib"] = "ck";
    recipes.back().kernel_library = composable_kernel;
    recipes.back().note =
        "block-scaled fp8 by Composable Kernel only; newer kernels are up to 1.3 times as fast for "
        "M >= 65536, per-tensor hipBLASLt fp8 up to 1.9 times";

    for (const auto& [dtype, code] : {std::pair(DType::bf16, "BBS"), std::pair(DType::fp16, "HHS")}) {
        recipes.push_back(tensile_recipe(
            "mi250x", dtype, {{"arch", "aldebaran"}, {"cu_dir", "104CU/Equality"}, {"dtype_code", code}},
            {104, 130, 1.3, 1300, 8, 64, tensile_tiles}));
        recipes.back().deployed_units = 110;
        recipes.back().kernel_library = tensile;
        recipes.back().note =
            "one GCD. Fitted to an MI250 (104 CUs), rate per CU kept for 110 CUs. Old library, few rows";
        // There a GEMM of 0.07 GFLOP takes 39 (fp16 31) us; the shortest kernel of 110 CUs in this file
        // takes 5.6 us. The 17 unbatched kernels of 110 CUs and 20 us or more are predicted 42 % too long
        // with the fitted 27 us, and 13 % too long with 4 us.
        recipes.back().deployed_launch_us = 4;
        recipes.back().launch_source =
            "estimate, the prior of models/calibration/recipes/gemm_recipes.cpp: the fitted rows hold a gap "
            "between launches (bf16 30.4, fp16 27.3 us fitted, but kernels of 5.6 us in rows of 110 CUs of "
            "the same table)";
    }
    recipes.push_back(nvidia_recipe("h100", 2950));
    recipes.back().kernel_library = "torch linear of TensorRT-LLM 1.3.0rc20";
    recipes.push_back(nvidia_recipe("h200", 4150));
    recipes.back().check_only = true;
    recipes.back().note = "another library version (and event times) than configs/calibrations/h200.json";
    return recipes;
}

/// The tile counts in `algorithm` of gemm.jsonl show what cuBLASLt 13.1 chose: 128x256, 192x192, 128x320 and
/// 192x128 in 77 % of the rows, then 128x128, 64x64, 64x128, 128x192, 64x96, 128x96, 160x128 and others. This
/// list has the frequent ones, the other orientation of some, and a few thin ones for small M (estimates).
const std::vector<std::pair<std::int64_t, std::int64_t>> cublaslt_tiles{
    {128, 256}, {256, 128}, {192, 192}, {128, 320}, {192, 128}, {128, 192}, {128, 160},
    {128, 128}, {128, 64},  {64, 128},  {64, 64},   {192, 64},  {64, 256},  {64, 192}};

/// Libraries reach this share of the data sheet's rate: the fits of H100 and H200 (792 and 790 of 989 TFLOPS); elsewhere
/// an estimate with a spread of 1.3.
constexpr double usual_share_of_peak = 0.8;

/// The clock of an H200 falls by 12 to 18 % after 40 to 100 ms of GEMMs without a pause (local.jsonl, `sustained`).
GemmPrior measured_prior(const Hardware& hardware) {
    GemmPrior prior = prior_for(hardware);
    const auto fields = GemmParameters::fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (fields[i].key == "sustained_slowdown") fields[i].set(prior.start, 0.17);
        if (fields[i].key == "sustained_time_us") fields[i].set(prior.start, 150'000);
    }
    return prior;
}

/// bf16 has a prior of its own; the rate of fp8 is `fp8_ratio` times as high.
std::vector<MeasuredGemmRecipe> measured_recipes(const std::string& device, const std::string& machine,
                                                 const GemmPrior& prior, double fp8_ratio) {
    std::ostringstream ratio;
    ratio << fp8_ratio;
    return {
        {.device = device,
         .machine = machine,
         .dtype = DType::bf16,
         .prior_dtype = DType::bf16,
         .prior = prior,
         .note = "time: chain_us, GEMMs back to back without an event between"},
        {.device = device,
         .machine = machine,
         .dtype = DType::fp16,
         .prior_dtype = DType::bf16,
         .prior = {},
         .note = "few rows: the prior is the fit of bf16"},
        // Tiles have the same depth in bytes, so twice the depth in K.
        {.device = device,
         .machine = machine,
         .dtype = DType::fp8,
         .prior_dtype = DType::bf16,
         .rate_ratio = fp8_ratio,
         .rate_spread = 1.3,
         .spread = 1.3,
         .k_step = 128,
         .prior = {},
         .note = "few rows: the prior is the fit of bf16, with its rate times " + ratio.str()},
    };
}

const std::string max_achievable =
    "measured max-achievable TFLOPS, ROCm blog 'Measuring max-achievable FLOPs, part 2': ";
const std::string mamf = "stas00/ml-engineering MAMF table: ";

std::vector<GemmDerivation> make_derivations() {
    const double mi325x_hbm = 6.0 / 5.3;
    const std::string hbm = "; memory by the datasheets, 6.0/5.3 TB/s";
    return {
        {"mi300x", DType::fp16, "mi300x", DType::bf16, 654.0 / 708, 1, max_achievable + "fp16 654, bf16 708"},
        {"mi325x", DType::bf16, "mi300x", DType::bf16, 843.0 / 708, mi325x_hbm,
         max_achievable + "MI325X 843, MI300X 708" + hbm},
        {"mi325x", DType::fp16, "mi300x", DType::fp16, 794.0 / 654, mi325x_hbm,
         max_achievable + "MI325X 794, MI300X 654" + hbm},
        {"mi325x", DType::fp8, "mi300x", DType::fp8, 1519.0 / 1273, mi325x_hbm,
         max_achievable + "MI325X 1519, MI300X 1273" + hbm},
        {"mi355x", DType::fp16, "mi355x", DType::bf16, 1, 1,
         "estimate: same datasheet rate as bf16, none measured"},
        {"h100", DType::fp16, "h100", DType::bf16, 1, 1,
         "estimate: same datasheet rate as bf16, none measured"},
        {"h100", DType::fp8, "h100", DType::bf16, 1403.0 / 794, 1, mamf + "H100 fp8 1403, bf16 794 TFLOPS"},
    };
}

}  // namespace

const std::vector<GemmRecipe>& gemm_recipes() {
    static const std::vector<GemmRecipe> recipes = make_recipes();
    return recipes;
}

const std::vector<MeasuredGemmRecipe>& measured_gemm_recipes() {
    static const std::vector<MeasuredGemmRecipe> recipes = measured_recipes(
        "h200", "NVIDIA H200", measured_prior({132, 800, 1.3, 4150, 50, 64, cublaslt_tiles}), 1.8);
    return recipes;
}

std::vector<MeasuredGemmRecipe> measured_gemm_recipes_of(const DeviceSpec& device, const std::string& machine,
                                                         const std::string& platform) {
    const auto peak = [&](DType dtype) {
        const auto found = device.peak.find(dtype);
        return found == device.peak.end() ? 0.0 : to_teraflops(found->second);
    };
    const GemmPrior prior = measured_prior({static_cast<double>(device.compute_units),
                                            usual_share_of_peak * peak(DType::bf16), 1.3,
                                            to_gigabytes_per_second(device.hbm), device.last_level_cache.si() * 1e-6,
                                            64, platform == "AMD" ? amd_tiles : cublaslt_tiles});
    const double fp8 = peak(DType::fp8) > 0 ? 0.9 * peak(DType::fp8) / peak(DType::bf16) : 1;
    return measured_recipes(device.name, machine, prior, fp8);
}

const std::vector<GemmDerivation>& gemm_derivations() {
    static const std::vector<GemmDerivation> derivations = make_derivations();
    return derivations;
}

}  // namespace overlap
