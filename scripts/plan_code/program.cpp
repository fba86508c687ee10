// {{title}}
// Written by scripts/plan_to_code.
//   nvcc -std=c++17 -O2 -x cu program.cpp -lcublasLt -o program
//   hipcc -std=c++17 -O2 program.cpp -lhipblaslt -o program
//   ./program [--check] [--repeats N]     median time of N runs (21); --check: compare results with one GEMM a GPU

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <tuple>
#include <vector>

#ifdef __HIP_PLATFORM_AMD__
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <hipblaslt/hipblaslt.h>
#define GPU(name) hip##name
#define LT(name) hipblasLt##name
#define LT_KEY(name) HIPBLASLT_##name
#define BLAS(name) HIPBLAS_##name
#define TYPE(name) HIP_##name
#define UNITS hipDeviceAttributeMultiprocessorCount
#define HOST_MEMORY hipHostMalloc
#define BF16 __hip_bfloat16
#else
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define GPU(name) cuda##name
#define LT(name) cublasLt##name
#define LT_KEY(name) CUBLASLT_##name
#define BLAS(name) CUBLAS_##name
#define TYPE(name) CUDA_##name
#define UNITS cudaDevAttrMultiProcessorCount
#define HOST_MEMORY cudaHostAlloc
#define BF16 __nv_bfloat16
#endif
#ifndef LAUNCH
#define LAUNCH(kernel, blocks, threads, stream, ...) kernel<<<blocks, threads, 0, stream>>>(__VA_ARGS__)
#endif

constexpr int gpus = {{gpus}};
constexpr long M = {{m}}, N = {{n}}, K = {{k}};  // the whole GEMM of a GPU: C[M,N] = A[M,K] B[K,N], row-major
[[maybe_unused]] constexpr long shard = M / gpus;  // rows of a rank's shard
using Element = {{element}};
constexpr auto element_type = TYPE({{element_type}});

// ---- Helpers: the schedule itself is enqueue(), below ----

#define check(call) check_status(static_cast<int>(call), #call, __LINE__)
inline void check_status(int status, const char* call, int line) {
    if (status == 0) return;
    std::fprintf(stderr, "line %d: %s: error %d\n", line, call, status);
    std::exit(1);
}

// A matrix in the memory of a GPU, or a part of one.
struct Block {
    Element* data;
    long rows, columns, pitch;  // pitch: elements from row to row
    Block part(long row, long column, long count, long width) const { return {data + row * pitch + column, count, width, pitch}; }
    Block part(long row, long count) const { return part(row, 0, count, columns); }
};

enum StreamName { {{streams}}, streams };
enum EventName { {{events}} events };
GPU(Stream_t) stream[gpus][streams];
GPU(Event_t) done[gpus][events + 1], released[gpus], ended[gpus][streams];
Block {{buffers}};
LT(Handle_t) library[gpus];
void* workspace[gpus];
constexpr size_t workspace_bytes = size_t{32} << 20;
int units[gpus];  // streaming multiprocessors or compute units
volatile int* gate;  // host memory: GPUs begin when it is 1

inline void use(int rank) { check(GPU(SetDevice)(rank)); }
// The stream goes on once another rank's, or another stream's, task has ended. That event was recorded before in enqueue().
inline void wait(int rank, StreamName on, int of, EventName event) { check(GPU(StreamWaitEvent)(stream[rank][on], done[of][event], 0)); }
inline void record(int rank, StreamName on, EventName event) { check(GPU(EventRecord)(done[rank][event], stream[rank][on])); }
// The value of this rank.
[[maybe_unused]] inline long pick(int rank, std::initializer_list<long> values) { return values.begin()[rank]; }
// The place of a peer among the ranks other than `rank`, and the rank of a place.
[[maybe_unused]] inline long slot(int rank, int peer) { return peer - (peer > rank); }
[[maybe_unused]] inline long other(int rank, int place) { return place + (place >= rank); }

// C = A B + beta C. The library is column-major: it computes the transpose, with B as its first operand.
struct Gemm {
    LT(MatmulDesc_t) description;
    LT(MatrixLayout_t) a, b, c;
    LT(MatmulHeuristicResult_t) choice;
};
inline void gemm(int rank, StreamName on, const Block& a, const Block& b, const Block& c, float beta = 0) {
    static std::map<std::tuple<int, long, long, long, long, long, long>, Gemm> known;
    const auto [place, is_new] = known.try_emplace({rank, c.rows, c.columns, a.columns, a.pitch, b.pitch, c.pitch});
    Gemm& one = place->second;
    if (is_new) {
        check(LT(MatmulDescCreate)(&one.description, BLAS(COMPUTE_32F), TYPE(R_32F)));
        check(LT(MatrixLayoutCreate)(&one.a, element_type, a.columns, a.rows, a.pitch));
        check(LT(MatrixLayoutCreate)(&one.b, element_type, b.columns, b.rows, b.pitch));
        check(LT(MatrixLayoutCreate)(&one.c, element_type, c.columns, c.rows, c.pitch));
        LT(MatmulPreference_t) preference;
        check(LT(MatmulPreferenceCreate)(&preference));
        check(LT(MatmulPreferenceSetAttribute)(preference, LT_KEY(MATMUL_PREF_MAX_WORKSPACE_BYTES), &workspace_bytes,
                                                  sizeof workspace_bytes));
        int found = 0;
        check(LT(MatmulAlgoGetHeuristic)(library[rank], one.description, one.b, one.a, one.c, one.c, preference, 1, &one.choice, &found));
        check(LT(MatmulPreferenceDestroy)(preference));
        check(found == 0);
    }
    const float alpha = 1;
    check(LT(Matmul)(library[rank], one.description, &alpha, b.data, one.b, a.data, one.a, &beta, c.data, one.c, c.data, one.c,
                     &one.choice.algo, workspace[rank], workspace_bytes, stream[rank][on]));
}

// Kernels copy 16 bytes at a time.
constexpr int threads = 512, lanes = 16 / sizeof(Element), most = 16;
struct Blocks {
    Block block[most];
};
__device__ inline uint4* vector_at(const Block& block, unsigned i) {
    const unsigned width = block.columns / lanes;
    return reinterpret_cast<uint4*>(block.data + i / width * block.pitch) + i % width;
}
// blockIdx.y: which of the blocks.
__global__ void __launch_bounds__(threads) copy_by_kernel(Blocks from, Blocks to) {
    const Block source = from.block[blockIdx.y], target = to.block[blockIdx.y];
    const unsigned count = source.rows * source.columns / lanes, stride = gridDim.x * threads;
    for (unsigned i = blockIdx.x * threads + threadIdx.x; i < count; i += 8 * stride) {
        uint4 values[8];
#pragma unroll
        for (int u = 0; u < 8; ++u)
            if (i + u * stride < count) values[u] = *vector_at(source, i + u * stride);
#pragma unroll
        for (int u = 0; u < 8; ++u)
            if (i + u * stride < count) *vector_at(target, i + u * stride) = values[u];
    }
}
__device__ inline float number(float value) { return value; }
__device__ inline float number(__half value) { return __half2float(value); }
__device__ inline float number(BF16 value) { return __bfloat162float(value); }
__device__ inline void store(float& to, float value) { to = value; }
__device__ inline void store(__half& to, float value) { to = __float2half(value); }
__device__ inline void store(BF16& to, float value) { to = __float2bfloat16(value); }
// The target may be one of the parts.
__global__ void __launch_bounds__(threads) sum_by_kernel(Blocks parts, int count, Block to) {
    const unsigned all = to.rows * to.columns / lanes;
    for (unsigned i = blockIdx.x * threads + threadIdx.x; i < all; i += gridDim.x * threads) {
        float sums[lanes] = {};
        for (int p = 0; p < count; ++p) {
            const uint4 vector = *vector_at(parts.block[p], i);
            for (int e = 0; e < lanes; ++e) sums[e] += number(reinterpret_cast<const Element*>(&vector)[e]);
        }
        uint4 vector;
        for (int e = 0; e < lanes; ++e) store(reinterpret_cast<Element*>(&vector)[e], sums[e]);
        *vector_at(to, i) = vector;
    }
}
// A copy by a DMA engine, or by a kernel of `blocks` thread blocks.
inline void copy(int rank, StreamName on, const Block& from, const Block& to, int blocks = 0) {
    const size_t width = from.columns * sizeof(Element), from_pitch = from.pitch * sizeof(Element), to_pitch = to.pitch * sizeof(Element);
    if (blocks)
        LAUNCH(copy_by_kernel, blocks, threads, stream[rank][on], Blocks{{from}}, Blocks{{to}});
    else if (width == from_pitch && width == to_pitch)
        check(GPU(MemcpyAsync)(to.data, from.data, from.rows * width, GPU(MemcpyDefault), stream[rank][on]));
    else
        check(GPU(Memcpy2DAsync)(to.data, to_pitch, from.data, from_pitch, width, from.rows, GPU(MemcpyDefault), stream[rank][on]));
    check(GPU(GetLastError)());
}
// Several copies within a GPU, by one kernel of two thread blocks a unit.
[[maybe_unused]] inline void move(int rank, StreamName on, std::initializer_list<Block> from, std::initializer_list<Block> to) {
    Blocks sources{}, targets{};
    std::copy(from.begin(), from.end(), sources.block);
    std::copy(to.begin(), to.end(), targets.block);
    const unsigned count = from.size();
    LAUNCH(copy_by_kernel, dim3(std::max(2 * units[rank] / count, 1u), count), threads, stream[rank][on], sources, targets);
    check(GPU(GetLastError)());
}
[[maybe_unused]] inline void sum(int rank, StreamName on, std::initializer_list<Block> parts, const Block& to) {
    Blocks sources{};
    std::copy(parts.begin(), parts.end(), sources.block);
    LAUNCH(sum_by_kernel, 2 * units[rank], threads, stream[rank][on], sources, static_cast<int>(parts.size()), to);
    check(GPU(GetLastError)());
}

// ---- The schedule ----

// One host thread enqueues the tasks of all GPUs. An event is recorded before anybody waits for it: work of a later step may
// wait for work of any rank in an earlier one. The host is ahead of the GPUs, so steps are no barriers.
void enqueue() {
{{steps}}}

// ---- Memory, inputs, times and the check ----

__global__ void hold(volatile int* closed) {
    while (*closed == 0) {
    }
}
__host__ __device__ inline float value_at(uint64_t seed, uint64_t place) {  // in [-1, 1)
    uint64_t x = (seed << 40) + place + 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<float>((x ^ (x >> 31)) >> 40) / 8388608.0f - 1.0f;
}
// Rows row … row + rows - 1 of a whole matrix, whose elements have values by their place.
__global__ void fill_rows(Block whole, long row, long rows, uint64_t seed) {
    for (long i = row * whole.columns + blockIdx.x * 256L + threadIdx.x; i < (row + rows) * whole.columns; i += gridDim.x * 256L)
        store(whole.data[i], value_at(seed, i));
}
inline void fill(const Block& whole, long row, long rows, uint64_t seed) { LAUNCH(fill_rows, 2048, 256, nullptr, whole, row, rows, seed); }

inline Block allocate(int rank, long rows, long columns) {
    Block block{nullptr, rows, columns, columns};
    use(rank);
    check(GPU(Malloc)(reinterpret_cast<void**>(&block.data), rows * columns * sizeof(Element)));
    check(GPU(Memset)(block.data, 0xff, rows * columns * sizeof(Element)));  // not a number
    return block;
}

constexpr bool gathers = {{gathers}};  // else results are sums over all GPUs
inline uint64_t seed_of_a(int rank) { return gathers ? 1 : 100 + rank; }  // a gathered A is one matrix
inline uint64_t seed_of_b(int rank) { return 200 + rank; }

void set_up() {
    int found = 0;
    check(GPU(GetDeviceCount)(&found));
    if (found < gpus) {
        std::fprintf(stderr, "needs %d GPUs, this host has %d\n", gpus, found);
        std::exit(2);
    }
    check(HOST_MEMORY(reinterpret_cast<void**>(const_cast<int**>(&gate)), sizeof(int), 0));
    for (int rank = 0; rank < gpus; ++rank) {
        use(rank);
        check(GPU(DeviceGetAttribute)(&units[rank], UNITS, rank));
        for (int other = 0; other < gpus; ++other)
            if (other != rank) check(GPU(DeviceEnablePeerAccess)(other, 0));
        int least = 0, greatest = 0;
        check(GPU(DeviceGetStreamPriorityRange)(&least, &greatest));
        check(GPU(Malloc)(&workspace[rank], workspace_bytes));
        for (int one = 0; one < streams; ++one) {
            const bool first = {{first}};  // goes before other streams
            check(GPU(StreamCreateWithPriority)(&stream[rank][one], GPU(StreamNonBlocking), first ? greatest : least));
            check(GPU(EventCreate)(&ended[rank][one]));
            // Streams get their hardware queues in the order of their first use.
            check(GPU(MemsetAsync)(workspace[rank], 0, 4, stream[rank][one]));
            check(GPU(DeviceSynchronize)());
        }
        check(GPU(EventCreate)(&released[rank]));
        for (auto& event : done[rank]) check(GPU(EventCreateWithFlags)(&event, GPU(EventDisableTiming)));
        check(LT(Create)(&library[rank]));
{{memory}}    }
    for (int rank = 0; rank < gpus; ++rank) use(rank), check(GPU(DeviceSynchronize)());
}

// Microseconds from the release of a GPU to the end of its last stream, on the GPU that takes longest. All is enqueued behind a
// closed gate, so that the host's time is not part of it; without a gate the first run loads the kernels.
double run(bool gated) {
    *gate = !gated;
    for (int rank = 0; rank < gpus; ++rank) {
        use(rank);
        LAUNCH(hold, 1, 1, stream[rank][0], const_cast<int*>(gate));
        check(GPU(EventRecord)(released[rank], stream[rank][0]));
        for (int one = 1; one < streams; ++one) check(GPU(StreamWaitEvent)(stream[rank][one], released[rank], 0));
    }
    enqueue();
    for (int rank = 0; rank < gpus; ++rank) {
        use(rank);
        for (int one = 0; one < streams; ++one) check(GPU(EventRecord)(ended[rank][one], stream[rank][one]));
    }
    *gate = 1;
    for (int rank = 0; rank < gpus; ++rank) use(rank), check(GPU(DeviceSynchronize)());
    float longest = 0;
    for (int rank = 0; rank < gpus; ++rank)
        for (int one = 0; one < streams; ++one) {
            float milliseconds = 0;
            check(GPU(EventElapsedTime)(&milliseconds, released[rank], ended[rank][one]));
            longest = std::max(longest, milliseconds);
        }
    return longest * 1e3;
}

// The allowed error: one rounding of the type for every GPU and every addition to C, of numbers as large as a sum of K products.
__global__ void compare(Block found, Block expected, float allowed, float size, unsigned long long* wrong) {
    for (long i = blockIdx.x * 256L + threadIdx.x; i < found.rows * found.columns; i += gridDim.x * 256L) {
        const long at = i / found.columns * found.pitch + i % found.columns;
        const float want = number(expected.data[i]);
        if (!(fabsf(number(found.data[at]) - want) <= allowed * (fabsf(want) + size))) atomicAdd(wrong, 1ULL);
    }
}
// Entries of `result`, rows row … of C, that are not those of GEMMs of the whole matrices.
unsigned long long wrong_entries(int rank, const Block& result, long row) {
    static Block whole_a[gpus], whole_b[gpus], whole_c[gpus];
    if (!whole_a[rank].data) {
        whole_a[rank] = allocate(rank, M, K), whole_b[rank] = allocate(rank, K, N), whole_c[rank] = allocate(rank, M, N);
        for (int other = 0; other < gpus; ++other) {
            if (gathers && other != rank) continue;
            fill(whole_a[rank], 0, M, seed_of_a(other));
            fill(whole_b[rank], 0, K, seed_of_b(other));
            check(GPU(DeviceSynchronize)());
            gemm(rank, compute, whole_a[rank], whole_b[rank], whole_c[rank], gathers || other == 0 ? 0.0f : 1.0f);
            check(GPU(DeviceSynchronize)());
        }
    }
    use(rank);
    unsigned long long *counter = nullptr, wrong = 0;
    check(GPU(Malloc)(reinterpret_cast<void**>(&counter), sizeof wrong));
    check(GPU(Memset)(counter, 0, sizeof wrong));
    LAUNCH(compare, 2048, 256, nullptr, result, whole_c[rank].part(row, result.rows), {{roundings}} * {{epsilon}}f,
           std::sqrt(static_cast<float>(gathers ? K : K * gpus)), counter);
    check(GPU(Memcpy)(&wrong, counter, sizeof wrong, GPU(MemcpyDeviceToHost)));
    check(GPU(Free)(counter));
    return wrong;
}

int main(int count, char** arguments) {
    bool checks = false;
    int repeats = 21;
    for (int i = 1; i < count; ++i)
        if (!std::strcmp(arguments[i], "--check"))
            checks = true;
        else if (!std::strcmp(arguments[i], "--repeats") && i + 1 < count && std::atoi(arguments[i + 1]) > 0)
            repeats = std::atoi(arguments[++i]);
        else
            return std::fprintf(stderr, "usage: %s [--check] [--repeats N]\n", arguments[0]), 2;
    set_up();
    run(false);
    for (int i = 0; i < 3; ++i) run(true);
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) times.push_back(run(true));
    const auto begin = std::chrono::steady_clock::now();
    run(false);
    const std::chrono::duration<double, std::micro> with_host = std::chrono::steady_clock::now() - begin;
    std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
    std::printf("%.1f us (median of %d); %.1f us with the time that this host thread takes\n", times[repeats / 2], repeats,
                with_host.count());
    if (!checks) return 0;
    unsigned long long wrong = 0;
{{checks}}    std::printf(wrong ? "WRONG: %llu entries\n" : "results are right\n", wrong);
    return wrong != 0;
}
