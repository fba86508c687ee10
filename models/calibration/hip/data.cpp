// Random inputs, poisoned outputs, and the check of copied data.

#include "models/calibration/hip/data.hpp"

#include "models/calibration/hip/elements.hpp"

namespace overlap::hip {
namespace {

constexpr int blocks = 1024, threads = 256;

__global__ void write_words(std::uint64_t* memory, std::size_t count, std::uint64_t seed) {
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        memory[i] = hashed(seed, i);
}

__global__ void write_elements(void* memory, std::size_t count, DType type, std::uint64_t seed) {
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        store_element(memory, i, type, random_value(seed, i));
}

__global__ void compare_words(const char* memory, Rows here, Rows there, std::size_t offset,
                              std::uint64_t seed, unsigned long long* wrong) {
    const std::size_t words = here.row_bytes / 8, count = words * here.rows;
    unsigned long long mine = 0;
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const std::size_t row = i / words, column = i % words;
        const auto found = *reinterpret_cast<const std::uint64_t*>(memory + row * here.pitch + column * 8);
        mine += found != hashed(seed, (offset + row * there.pitch) / 8 + column);
    }
    if (mine) atomicAdd(wrong, mine);
}

}  // namespace

void fill_words(void* memory, std::size_t bytes, std::uint64_t seed) {
    write_words<<<blocks, threads>>>(static_cast<std::uint64_t*>(memory), bytes / 8, seed);
    check_launch();
    check(hipDeviceSynchronize());
}

void fill_elements(void* memory, std::size_t count, DType type, std::uint64_t seed) {
    write_elements<<<blocks, threads>>>(memory, count, type, seed);
    check_launch();
    check(hipDeviceSynchronize());
}

void poison(void* memory, std::size_t bytes) {
    check(hipMemset(memory, 0xff, bytes));
    check(hipDeviceSynchronize());
}

void expect_words(const void* memory, Rows here, Rows there, std::size_t offset, std::uint64_t seed) {
    const DeviceCounter wrong;
    compare_words<<<blocks, threads>>>(static_cast<const char*>(memory), here, there, offset, seed,
                                       wrong.word);
    check_launch();
    if (const auto count = wrong.value(); count != 0)
        throw WrongResult(std::to_string(count) + " of " + std::to_string(here.rows * here.row_bytes / 8) +
                          " words copied wrong");
}

}  // namespace overlap::hip
