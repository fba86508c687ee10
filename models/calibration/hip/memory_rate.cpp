// Measures how fast a given number of compute units read, write and combine local memory.
//
// One thread block of 1024 threads a compute unit; its shared memory keeps a second block
// off. `size`: of one array.
//   read     1 array read           write    1 array written
//   triad    a = b + s·c: 2 read, 1 written, fp32
//   reduce   sum of `parts` bf16 arrays into one, added in fp32: parts read, 1 written
// Samples: from release to end, µs. Results are checked; sums are compared with a second, plain pass.

#include "models/calibration/hip/data.hpp"
#include "models/calibration/hip/elements.hpp"
#include "models/calibration/hip/lanes.hpp"
#include "models/calibration/hip/question.hpp"

namespace overlap::hip {
namespace {

constexpr int threads = 1024, unroll = 4, most_parts = 8;

struct Parts {
    const uint4* array[most_parts];
    int count;
};

/// Calls `body(i)` for every i below count, with `unroll` independent calls at a time.
template <class Body>
__device__ void each(std::size_t count, Body body) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * threads;
    std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    for (; i + (unroll - 1) * stride < count; i += unroll * stride) {
#pragma unroll
        for (int u = 0; u < unroll; ++u) body(i + u * stride);
    }
    for (; i < count; i += stride) body(i);
}

__global__ void __launch_bounds__(threads) read_all(const uint4* a, std::size_t count, unsigned* found) {
    unsigned seen = 0;
    each(count, [&](std::size_t i) {
        const uint4 v = a[i];
        seen ^= v.x ^ v.y ^ v.z ^ v.w;
    });
    atomicXor(found, seen);
}

__global__ void __launch_bounds__(threads) write_all(uint4* a, std::size_t count) {
    each(count, [&](std::size_t i) { a[i] = uint4{static_cast<unsigned>(i), 1, 2, 3}; });
}

__global__ void __launch_bounds__(threads) triad(float4* __restrict__ a, const float4* __restrict__ b,
                                                 const float4* __restrict__ c, std::size_t count) {
    each(count, [&](std::size_t i) {
        const float4 x = b[i], y = c[i];
        a[i] = {x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w};
    });
}

__global__ void __launch_bounds__(threads)
    reduce(Parts parts, uint4* __restrict__ result, std::size_t count) {
    each(count, [&](std::size_t i) {
        float sum[8] = {};
        for (int part = 0; part < parts.count; ++part) {
            const uint4 v = __ldg(parts.array[part] + i);  // read-only here, so loads may run ahead
            add_pair(sum, v.x), add_pair(sum + 2, v.y), add_pair(sum + 4, v.z), add_pair(sum + 6, v.w);
        }
        result[i] = {rounded_pair(sum), rounded_pair(sum + 2), rounded_pair(sum + 4), rounded_pair(sum + 6)};
    });
}

/// One element a thread: a plain kernel that gives the same digits.
__global__ void check_sum(Parts parts, const std::uint16_t* result, std::size_t count,
                          unsigned long long* wrong) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float sum = 0;
    for (int part = 0; part < parts.count; ++part)
        sum += bf16_to_float(reinterpret_cast<const std::uint16_t*>(parts.array[part])[i]);
    if (float_to_bf16(sum) != result[i]) atomicAdd(wrong, 1ULL);
}

__global__ void check_triad(const float* a, const float* b, const float* c, std::size_t count,
                            unsigned long long* wrong) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float expected = b[i] + 3 * c[i];
    if (!(fabsf(a[i] - expected) <= 1e-6f * (fabsf(b[i]) + 3 * fabsf(c[i])))) atomicAdd(wrong, 1ULL);
}

__global__ void check_written(const uint4* a, std::size_t count, unsigned long long* wrong) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count && (a[i].x != static_cast<unsigned>(i) || a[i].w != 3)) atomicAdd(wrong, 1ULL);
}

/// XOR of all words; one thread for each vector.
__global__ void check_read(const uint4* a, std::size_t count, unsigned* found) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) atomicXor(found, a[i].x ^ a[i].y ^ a[i].z ^ a[i].w);
}

struct Arrays {
    uint4* result;
    Parts parts;
    std::size_t bytes, vectors;
    unsigned *found, *expected;
};

Arrays make_arrays(Machine& machine, std::size_t bytes, int parts) {
    Arrays arrays{};
    arrays.bytes = bytes;
    arrays.vectors = bytes / 16;
    arrays.parts.count = parts;
    arrays.result = static_cast<uint4*>(machine.take(0, bytes));
    for (int part = 0; part < parts; ++part) {
        void* array = machine.take(0, bytes);
        fill_elements(array, bytes / 2, DType::bf16, 20 + part);  // pairs of bf16 are finite as fp32, too
        arrays.parts.array[part] = static_cast<const uint4*>(array);
    }
    arrays.found = static_cast<unsigned*>(machine.take(0, 4096));
    arrays.expected = static_cast<unsigned*>(machine.take(0, 4096));
    return arrays;
}

Operation kernel_of(const std::string& operation, const Arrays& x, int blocks) {
    return [&operation, &x, blocks](hipStream_t stream) {
        constexpr int shared = whole_unit_shared_bytes;
        const uint4 *b = x.parts.array[0], *c = x.parts.array[1];
        if (operation == "read") read_all<<<blocks, threads, shared, stream>>>(b, x.vectors, x.found);
        if (operation == "write") write_all<<<blocks, threads, shared, stream>>>(x.result, x.vectors);
        if (operation == "triad")
            triad<<<blocks, threads, shared, stream>>>(reinterpret_cast<float4*>(x.result),
                                                       reinterpret_cast<const float4*>(b),
                                                       reinterpret_cast<const float4*>(c), x.vectors);
        if (operation == "reduce") reduce<<<blocks, threads, shared, stream>>>(x.parts, x.result, x.vectors);
        check_launch();
    };
}

void check_result(const std::string& operation, const Arrays& x) {
    const DeviceCounter wrong;
    const auto grid = [](std::size_t count) { return static_cast<unsigned>((count + 255) / 256); };
    if (operation == "read") {
        unsigned found[2] = {0, 0};
        check_read<<<grid(x.vectors), 256>>>(x.parts.array[0], x.vectors, x.expected);
        check(hipMemcpy(&found[0], x.found, 4, hipMemcpyDeviceToHost));
        check(hipMemcpy(&found[1], x.expected, 4, hipMemcpyDeviceToHost));
        if (found[0] != found[1]) throw WrongResult("the words read do not add up");
    }
    if (operation == "write") check_written<<<grid(x.vectors), 256>>>(x.result, x.vectors, wrong.word);
    if (operation == "triad")
        check_triad<<<grid(x.bytes / 4), 256>>>(
            reinterpret_cast<const float*>(x.result), reinterpret_cast<const float*>(x.parts.array[0]),
            reinterpret_cast<const float*>(x.parts.array[1]), x.bytes / 4, wrong.word);
    if (operation == "reduce")
        check_sum<<<grid(x.bytes / 2), 256>>>(x.parts, reinterpret_cast<const std::uint16_t*>(x.result),
                                              x.bytes / 2, wrong.word);
    check_launch();
    if (wrong.value() != 0) throw WrongResult(std::to_string(wrong.value()) + " results are wrong");
}

Result run(Machine& machine, const Case& c) {
    const std::string& operation = c.word("operation");
    const std::size_t size = c.bytes("size");
    const int parts = static_cast<int>(c.count("parts")), blocks = static_cast<int>(c.count("blocks"));
    if (parts < 2 || parts > most_parts) throw UserError("parts is from 2 to " + std::to_string(most_parts));
    if (size == 0 || size % 4096) throw UserError("size is a multiple of 4096");
    if (blocks == 0) throw UserError("blocks is at least 1");
    check(hipSetDevice(0));
    allow_shared(read_all, whole_unit_shared_bytes);
    allow_shared(write_all, whole_unit_shared_bytes);
    allow_shared(triad, whole_unit_shared_bytes);
    allow_shared(reduce, whole_unit_shared_bytes);

    const Arrays arrays = make_arrays(machine, size, parts);
    const std::vector<Lane> lanes = {{0, {kernel_of(operation, arrays, blocks)}}};
    const auto once = [&] { return makespan(run_lanes(machine, lanes)); };
    once();
    Result result;
    for (std::int64_t sample = 0; sample < c.count("n_samples"); ++sample) {
        poison(arrays.result, size);
        check(hipMemset(arrays.found, 0, 4));  // two runs would cancel each other's XOR
        check(hipMemset(arrays.expected, 0, 4));
        check(hipDeviceSynchronize());
        result.samples.push_back(once());
    }
    check_result(operation, arrays);
    return result;
}

}  // namespace

Question memory_rate() {
    return {{"memory",
             {{"operation", Type::word, "read", {"read", "write", "triad", "reduce"}},
              {"blocks", Type::count},
              {"parts", Type::count, "2"},
              {"size", Type::bytes},
              {"n_samples", Type::count, "12"}}},
            run};
}

}  // namespace overlap::hip
