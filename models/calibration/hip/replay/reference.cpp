// Inputs of a plan, and the check of its results.

#include "models/calibration/hip/replay/reference.hpp"

#include "models/calibration/hip/data.hpp"
#include "models/calibration/hip/elements.hpp"

namespace overlap::hip {
namespace {

constexpr int sampled = 2048, threads = 256;

/// Seed of matrix A or B of a GPU; a gathered A is one matrix for all GPUs.
__host__ __device__ std::uint64_t seed_of_a(bool gathers, int gpu) {
    return gathers ? 1 : 100 + gpu;
}
__host__ __device__ std::uint64_t seed_of_b(int gpu) {
    return 200 + gpu;
}

__device__ float random_bf16(std::uint64_t seed, std::uint64_t place) {
    return bf16_to_float(float_to_bf16(random_value(seed, place)));
}

/// Rows row … row + rows − 1 of a whole matrix of `columns` columns.
__global__ void fill_rows(std::uint16_t* matrix, std::size_t begin, std::size_t end, std::uint64_t seed) {
    for (std::size_t i = begin + blockIdx.x * blockDim.x + threadIdx.x; i < end; i += gridDim.x * blockDim.x)
        matrix[i] = float_to_bf16(random_value(seed, i));
}

struct Product {
    bool gathers;
    int gpu, gpus;
    std::int64_t m, n, k;
    float roundings;
};

/// One entry of C for each thread block: of this GPU's A·B, or of the sum of all GPUs' A·B.
__global__ void __launch_bounds__(threads)
    compare_entries(const std::uint16_t* c, std::int64_t first_row, std::int64_t rows, Product product,
                    unsigned long long* wrong) {
    const std::uint64_t chosen = hashed(product.m + product.gpu, blockIdx.x) % (rows * product.n);
    const std::int64_t row = first_row + chosen / product.n, column = chosen % product.n;
    __shared__ float partial[threads];
    float expected = 0;
    for (int gpu = 0; gpu < product.gpus; ++gpu) {
        const int rank = product.gathers ? product.gpu : gpu;
        float sum = 0;
        for (std::int64_t k = threadIdx.x; k < product.k; k += threads)
            sum += random_bf16(seed_of_a(product.gathers, rank), row * product.k + k) *
                   random_bf16(seed_of_b(rank), k * product.n + column);
        partial[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x == 0)
            for (const float part : partial) expected += part;
        __syncthreads();
        if (product.gathers) break;
    }
    if (threadIdx.x != 0) return;
    // Products of numbers in [-1, 1) have a standard deviation of 1/3.
    const float terms = static_cast<float>(product.gathers ? product.k : product.k * product.gpus);
    const float allowed = product.roundings / 512 * (fabsf(expected) + sqrtf(terms));
    const float found = bf16_to_float(c[row * product.n + column]);
    if (!(fabsf(found - expected) <= allowed)) atomicAdd(wrong, 1ULL);
}

__global__ void count_not_written(const std::uint16_t* c, std::size_t begin, std::size_t end,
                                  unsigned long long* wrong) {
    unsigned long long mine = 0;
    for (std::size_t i = begin + blockIdx.x * blockDim.x + threadIdx.x; i < end; i += gridDim.x * blockDim.x)
        mine += isnan(bf16_to_float(c[i])) ? 1 : 0;
    if (mine) atomicAdd(wrong, mine);
}

}  // namespace

void fill_inputs(const PlacedPlan& placed) {
    const Plan& plan = *placed.plan;
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
        check(hipSetDevice(plan.buffers[i].gpu));
        if (plan.buffers[i].rows) check(hipMemset(placed.memory[i], 0xff, bytes_of(plan.buffers[i])));
    }
    for (const PlanBlock& input : plan.inputs) {
        const PlanBuffer& buffer = plan.buffers[input.buffer];
        check(hipSetDevice(buffer.gpu));
        const std::uint64_t seed =
            buffer.name == "b" ? seed_of_b(buffer.gpu) : seed_of_a(plan.gathers, buffer.gpu);
        fill_rows<<<2048, threads>>>(static_cast<std::uint16_t*>(placed.memory[input.buffer]),
                                     input.row * buffer.columns, (input.row + input.rows) * buffer.columns,
                                     seed);
        check_launch();
    }
    for (int gpu = 0; gpu < plan.gpus; ++gpu) {
        check(hipSetDevice(gpu));
        check(hipDeviceSynchronize());
    }
}

void check_results(const PlacedPlan& placed) {
    const Plan& plan = *placed.plan;
    for (const PlanBlock& result : plan.results) {
        const PlanBuffer& buffer = plan.buffers[result.buffer];
        check(hipSetDevice(buffer.gpu));
        const auto* c = static_cast<const std::uint16_t*>(placed.memory[result.buffer]);
        const Product product{plan.gathers,
                              buffer.gpu,
                              plan.gpus,
                              plan.m,
                              plan.n,
                              plan.k,
                              static_cast<float>(plan.chunks + plan.gpus)};
        const DeviceCounter wrong, missing;
        compare_entries<<<sampled, threads>>>(c, result.row, result.rows, product, wrong.word);
        check_launch();
        count_not_written<<<2048, threads>>>(c, result.row * plan.n, (result.row + result.rows) * plan.n,
                                             missing.word);
        check_launch();
        const auto wrong_entries = wrong.value(), missing_entries = missing.value();
        if (wrong_entries || missing_entries)
            throw WrongResult("GPU " + std::to_string(buffer.gpu) + ": " + std::to_string(wrong_entries) +
                              " of " + std::to_string(sampled) + " entries are not those of serial, " +
                              std::to_string(missing_entries) + " of all were not written");
    }
}

}  // namespace overlap::hip
