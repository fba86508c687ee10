// All-gathers and all-to-alls of one process with a GPU a rank: by NCCL's kernels, by NCCL's copy engines
// (NCCL_CTA_POLICY_ZERO with symmetric windows), and by copies of our own; alone and beside GEMMs.
//
//     nvcc -arch=sm_90 -std=c++17 -O2 -I$NCCL/include copy_engines.cu -L$NCCL/lib -l:libnccl.so.2 -lcublas -lcuda -o copy_engines
//     copy_engines OUT.jsonl [SECONDS]
//
// A line: `us`, from the common start to the last GPU's end, median of the repeats with `p10` and `p90`; `host_us` of the
// calls of all GPUs. `bytes` are the whole operand: gathered, or of one GPU. Beside a GEMM: which was enqueued first, whether
// the collective's stream has a higher priority; `gemm_us` and `collective_us` end at each one's end. `mode`: held, both are
// enqueued while a kernel holds the GPUs; live, one after the other onto idle GPUs; late, the second one 100 us later.
// remote_push and remote_pull copy to or from the peers only, local the rank's own part only; the others copy both, except
// all-gathers in place, whose own part is where it belongs.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#define CHECK(call)                                                                                        \
    do {                                                                                                   \
        const auto code = (call);                                                                          \
        if (static_cast<int>(code) != 0) {                                                                 \
            std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, static_cast<int>(code));    \
            std::exit(1);                                                                                  \
        }                                                                                                  \
    } while (0)

using Clock = std::chrono::steady_clock;
constexpr size_t largest = size_t{2} << 30;
constexpr int repeats = 9;
constexpr double late_us = 100;

__global__ void hold(volatile int* opened, long long cycles) {
    const long long begin = clock64();
    while (*opened == 0 && clock64() - begin < cycles) {
    }
}

__global__ void fill(__nv_bfloat16* data, size_t count, unsigned seed) {
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
        unsigned x = static_cast<unsigned>(i) * 2654435761u + seed;
        x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
        data[i] = __float2bfloat16(static_cast<float>(x) / 2147483648.0F - 1.0F);
    }
}

struct Gpu {
    cudaStream_t gate, compute, normal, high;
    cudaEvent_t start, gemm_end, collective_end;
    cublasHandle_t blas;
    ncclComm_t kernels, zero;
    char *send, *receive, *plain_send, *plain_receive;
    __nv_bfloat16 *a, *b, *c;
};

std::vector<Gpu> gpus;
int* opened;
FILE* out;
double stop_after;
Clock::time_point begun;

double seconds_since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

template <class Call> void on_each(Call call) {
    for (size_t rank = 0; rank < gpus.size(); ++rank) {
        CHECK(cudaSetDevice(static_cast<int>(rank)));
        call(static_cast<int>(rank), gpus[rank]);
    }
}

void synchronize() { on_each([](int, Gpu&) { CHECK(cudaDeviceSynchronize()); }); }

enum class Method {
    kernels, kernels_in_place, windows, engines, engines_in_place, batch_push, batch_pull, copy_push, copy_pull, remote_push, remote_pull, local
};
enum class Mode { held, live, late };
const char* const names[] = {"nccl",       "nccl_in_place", "nccl_windows", "nccl_zero_cta", "nccl_zero_cta_in_place", "batch_push",
                             "batch_pull", "copy_push",     "copy_pull",    "remote_push",   "remote_pull",            "local"};
const char* const mode_names[] = {"held", "live", "late"};
const std::vector<Method> methods = {Method::kernels,    Method::engines,     Method::kernels_in_place, Method::engines_in_place,
                                     Method::batch_push, Method::batch_pull,  Method::copy_push,        Method::copy_pull,
                                     Method::local,      Method::remote_push, Method::remote_pull,      Method::windows};

bool in_place(Method method) { return method == Method::kernels_in_place || method == Method::engines_in_place; }
bool in_plain_memory(Method method) {
    return method == Method::kernels || method == Method::kernels_in_place || method >= Method::batch_push;
}

// The copies of `rank`: its own part, and one to or from each peer in rotation.
void copies(int rank, bool gather, size_t part, bool push, Method method, cudaStream_t stream) {
    std::vector<const void*> sources;
    std::vector<void*> targets;
    const int ranks = static_cast<int>(gpus.size());
    const bool remote = method == Method::remote_push || method == Method::remote_pull;
    for (int step = remote ? 1 : 0; step < (method == Method::local ? 1 : ranks); ++step) {
        const int peer = (rank + step) % ranks;
        const int from = push ? rank : peer, to = push ? peer : rank;
        sources.push_back(gpus[from].plain_send + (gather ? 0 : to * part));
        targets.push_back(gpus[to].plain_receive + from * part);
    }
    if (method >= Method::copy_push) {
        for (size_t i = 0; i < targets.size(); ++i) CHECK(cudaMemcpyAsync(targets[i], sources[i], part, cudaMemcpyDefault, stream));
        return;
    }
    std::vector<size_t> sizes(ranks, part);
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
    size_t first = 0;
    CHECK(cudaMemcpyBatchAsync(targets.data(), sources.data(), sizes.data(), ranks, &attributes, &first, 1, stream));
}

double collective(Method method, bool gather, size_t bytes, bool high) {
    const auto begin = Clock::now();
    const size_t part = bytes / gpus.size();
    if (method >= Method::batch_push) {
        const bool push = method == Method::batch_push || method == Method::copy_push || method == Method::remote_push;
        on_each([&](int rank, Gpu& gpu) { copies(rank, gather, part, push, method, high ? gpu.high : gpu.normal); });
    } else {
        CHECK(ncclGroupStart());
        on_each([&](int rank, Gpu& gpu) {
            char* const to = in_plain_memory(method) ? gpu.plain_receive : gpu.receive;
            char* const from = in_place(method) ? to + rank * part : in_plain_memory(method) ? gpu.plain_send : gpu.send;
            const bool zero = method == Method::engines || method == Method::engines_in_place;
            CHECK((gather ? ncclAllGather : ncclAlltoAll)(from, to, part, ncclChar, zero ? gpu.zero : gpu.kernels, high ? gpu.high : gpu.normal));
        });
        CHECK(ncclGroupEnd());
    }
    return 1e6 * seconds_since(begin);
}

struct Shape {
    int m, n, k;
};

void gemm(const Shape& shape) {
    const float one = 1, zero = 0;
    on_each([&](int, Gpu& gpu) {  // row-major C[m,n] = A[m,k] B[n,k]'
        CHECK(cublasGemmEx(gpu.blas, CUBLAS_OP_T, CUBLAS_OP_N, shape.n, shape.m, shape.k, &one, gpu.b, CUDA_R_16BF, shape.k, gpu.a, CUDA_R_16BF,
                           shape.k, &zero, gpu.c, CUDA_R_16BF, shape.n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    });
}

struct Case {
    Method method = Method::kernels;
    Mode mode = Mode::held;
    bool gather = true, with_collective = false, with_gemm = false, gemm_first = false, high = false;
    size_t bytes = 0;
    Shape shape{};
};

struct Times {
    double gemm_us = 0, collective_us = 0, us = 0, host_us = 0;
};

Times run(const Case& one) {
    synchronize();
    *opened = one.mode == Mode::held ? 0 : 1;
    on_each([&](int, Gpu& gpu) {
        if (one.mode == Mode::held) hold<<<1, 1, 0, gpu.gate>>>(opened, 200'000'000);
        CHECK(cudaEventRecord(gpu.start, gpu.gate));
        CHECK(cudaStreamWaitEvent(gpu.compute, gpu.start));
        CHECK(cudaStreamWaitEvent(one.high ? gpu.high : gpu.normal, gpu.start));
    });
    Times times;
    const auto wait = [&] {
        for (const auto since = Clock::now(); one.mode == Mode::late && one.with_gemm && 1e6 * seconds_since(since) < late_us;) {
        }
    };
    if (one.with_gemm && one.gemm_first) gemm(one.shape), wait();
    if (one.with_collective) times.host_us = collective(one.method, one.gather, one.bytes, one.high);
    if (one.with_gemm && !one.gemm_first) wait(), gemm(one.shape);
    on_each([&](int, Gpu& gpu) {
        CHECK(cudaEventRecord(gpu.gemm_end, gpu.compute));
        CHECK(cudaEventRecord(gpu.collective_end, one.high ? gpu.high : gpu.normal));
    });
    *opened = 1;
    synchronize();
    on_each([&](int, Gpu& gpu) {
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, gpu.start, gpu.gemm_end));
        times.gemm_us = std::max(times.gemm_us, 1e3 * ms);
        CHECK(cudaEventElapsedTime(&ms, gpu.start, gpu.collective_end));
        times.collective_us = std::max(times.collective_us, 1e3 * ms);
    });
    times.us = std::max(times.gemm_us, times.collective_us);
    return times;
}

double at(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(share * (values.size() - 1) + 0.5)];
}

struct Medians {
    double us, p10, p90, gemm_us, collective_us, host_us;
};

Medians measured(const Case& one) {
    run(one);
    std::vector<double> all, gemms, collectives, hosts;
    for (int i = 0; i < repeats; ++i) {
        const Times times = run(one);
        all.push_back(times.us), gemms.push_back(times.gemm_us), collectives.push_back(times.collective_us), hosts.push_back(times.host_us);
    }
    return {at(all, 0.5), at(all, 0.1), at(all, 0.9), at(gemms, 0.5), at(collectives, 0.5), at(hosts, 0.5)};
}

// Whether each GPU has from each rank what that rank sent, at both ends of every part.
bool right(Method method, bool gather, size_t bytes) {
    const int ranks = static_cast<int>(gpus.size());
    const size_t part = bytes / ranks;
    on_each([&](int rank, Gpu& gpu) {
        for (char* buffer : {gpu.send, gpu.plain_send}) {
            for (int to = 0; to < ranks; ++to) CHECK(cudaMemset(buffer + to * part, 16 * (rank + 1) + (gather ? 0 : to), part));
        }
        for (char* buffer : {gpu.receive, gpu.plain_receive}) {
            CHECK(cudaMemset(buffer, 255, bytes));
            if (in_place(method)) CHECK(cudaMemset(buffer + rank * part, 16 * (rank + 1), part));
        }
    });
    Case one;
    one.method = method, one.gather = gather, one.bytes = bytes, one.with_collective = true;
    run(one);
    bool good = true;
    on_each([&](int rank, Gpu& gpu) {
        const char* const got = in_plain_memory(method) ? gpu.plain_receive : gpu.receive;
        for (int from = 0; from < ranks; ++from) {
            if (from == rank ? method == Method::remote_push || method == Method::remote_pull : method == Method::local) continue;
            for (size_t offset : {from * part, (from + 1) * part - 1}) {
                unsigned char byte = 0;
                CHECK(cudaMemcpy(&byte, got + offset, 1, cudaMemcpyDeviceToHost));
                good &= byte == 16 * (from + 1) + (gather ? 0 : rank);
            }
        }
    });
    return good;
}

bool over() { return seconds_since(begun) > stop_after; }

void alone() {
    for (bool gather : {true, false}) {
        for (size_t bytes = 64 << 10; bytes <= largest; bytes *= bytes < (size_t{1} << 30) ? 4 : 2) {
            for (Method method : methods) {
                if (in_place(method) && !gather) continue;
                if (over()) return;
                Case one;
                one.method = method, one.gather = gather, one.bytes = bytes, one.with_collective = true;
                const bool good = right(method, gather, bytes);
                const Medians found = measured(one);
                std::fprintf(out,
                             "{\"kind\":\"alone\",\"collective\":\"%s\",\"bytes\":%zu,\"method\":\"%s\",\"us\":%.2f,\"p10\":%.2f,\"p90\":%.2f,"
                             "\"host_us\":%.1f,\"right\":%s}\n",
                             gather ? "all_gather" : "all_to_all", bytes, names[static_cast<int>(method)], found.us, found.p10, found.p90,
                             found.host_us, good ? "true" : "false");
                std::fflush(out);
            }
        }
    }
}

void beside() {
    for (const Shape& shape : {Shape{8192, 8192, 8192}, Shape{8192, 2560, 8192}, Shape{4096, 4096, 4096}}) {
        Case one;
        one.shape = shape, one.with_gemm = true;
        const double gemm_alone = measured(one).us;
        one.with_collective = true;
        for (size_t mib : {16, 128, 512, 1024}) {
            for (bool gather : {true, false}) {
                for (Method method : methods) {
                    if (in_place(method) && !gather) continue;
                    one.method = method, one.gather = gather, one.bytes = mib << 20, one.with_gemm = false, one.high = false, one.mode = Mode::held;
                    if (over()) return;
                    const double collective_alone = measured(one).us;
                    one.with_gemm = true;
                    for (int way = 0; way < 12; ++way) {
                        one.gemm_first = (way & 1) != 0, one.high = (way & 2) != 0, one.mode = static_cast<Mode>(way / 4);
                        const Medians found = measured(one);
                        std::fprintf(out,
                                     "{\"kind\":\"beside\",\"gemm\":[%d,%d,%d],\"collective\":\"%s\",\"bytes\":%zu,\"method\":\"%s\",\"first\":\"%s\","
                                     "\"priority\":\"%s\",\"mode\":\"%s\",\"gemm_alone_us\":%.2f,\"collective_alone_us\":%.2f,\"us\":%.2f,\"p10\":%.2f,\"p90\":%.2f,"
                                     "\"gemm_us\":%.2f,\"collective_us\":%.2f}\n",
                                     shape.m, shape.n, shape.k, gather ? "all_gather" : "all_to_all", one.bytes, names[static_cast<int>(method)],
                                     one.gemm_first ? "gemm" : "collective", one.high ? "high" : "equal", mode_names[static_cast<int>(one.mode)], gemm_alone, collective_alone,
                                     found.us, found.p10, found.p90, found.gemm_us, found.collective_us);
                        std::fflush(out);
                    }
                }
            }
        }
    }
}

void prepare() {
    int count = 0, version = 0, least = 0, greatest = 0;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(ncclGetVersion(&version));
    gpus.resize(count);
    CHECK(cudaHostAlloc(reinterpret_cast<void**>(&opened), sizeof(int), cudaHostAllocMapped | cudaHostAllocPortable));
    *opened = 1;
    on_each([&](int rank, Gpu& gpu) {
        for (int peer = 0; peer < count; ++peer) {
            if (peer != rank) CHECK(cudaDeviceEnablePeerAccess(peer, 0));
        }
        CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
        for (cudaStream_t* stream : {&gpu.gate, &gpu.compute, &gpu.normal}) CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
        CHECK(cudaStreamCreateWithPriority(&gpu.high, cudaStreamNonBlocking, greatest));
        for (cudaEvent_t* event : {&gpu.start, &gpu.gemm_end, &gpu.collective_end}) CHECK(cudaEventCreate(event));
        CHECK(cudaMalloc(&gpu.plain_send, largest));
        CHECK(cudaMalloc(&gpu.plain_receive, largest));
        CHECK(ncclMemAlloc(reinterpret_cast<void**>(&gpu.send), largest));
        CHECK(ncclMemAlloc(reinterpret_cast<void**>(&gpu.receive), largest));
        for (__nv_bfloat16** operand : {&gpu.a, &gpu.b, &gpu.c}) {
            CHECK(cudaMalloc(operand, 8192 * 8192 * sizeof(__nv_bfloat16)));
            fill<<<1024, 256>>>(*operand, 8192 * 8192, 7 * rank + static_cast<unsigned>(operand - &gpu.a));
        }
        CHECK(cublasCreate(&gpu.blas));
        CHECK(cublasSetStream(gpu.blas, gpu.compute));
        void* workspace = nullptr;
        CHECK(cudaMalloc(&workspace, 32 << 20));
        CHECK(cublasSetWorkspace(gpu.blas, workspace, 32 << 20));
    });
    for (bool zero : {false, true}) {
        ncclUniqueId id;
        CHECK(ncclGetUniqueId(&id));
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        if (zero) config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
        CHECK(ncclGroupStart());
        on_each([&](int rank, Gpu& gpu) { CHECK(ncclCommInitRankConfig(zero ? &gpu.zero : &gpu.kernels, count, id, rank, &config)); });
        CHECK(ncclGroupEnd());
        CHECK(ncclGroupStart());
        on_each([&](int, Gpu& gpu) {
            static ncclWindow_t windows[64];
            static int used = 0;
            for (char* buffer : {gpu.send, gpu.receive}) {
                CHECK(ncclCommWindowRegister(zero ? gpu.zero : gpu.kernels, buffer, largest, &windows[used++], NCCL_WIN_COLL_SYMMETRIC));
            }
        });
        CHECK(ncclGroupEnd());
    }
    for (bool gather : {true, false}) {  // what is set up by first calls must not wait for a held GPU
        for (bool high : {false, true}) {
            for (Method method : methods) {
                if (in_place(method) && !gather) continue;
                for (size_t bytes = 64 << 10; bytes <= largest; bytes *= 2) collective(method, gather, bytes, high);
                synchronize();
            }
        }
    }
    for (const Shape& shape : {Shape{8192, 8192, 8192}, Shape{8192, 2560, 8192}, Shape{4096, 4096, 4096}}) gemm(shape);
    synchronize();
    cudaDeviceProp properties{};
    CHECK(cudaGetDeviceProperties(&properties, 0));
    const std::time_t now = std::time(nullptr);
    char date[32];
    std::strftime(date, sizeof date, "%FT%TZ", std::gmtime(&now));
    std::fprintf(out, "{\"schema\":1,\"kind\":\"machine\",\"device\":\"%s\",\"gpus\":%d,\"nccl\":%d,\"runtime\":%d,\"date\":\"%s\"}\n",
                 properties.name, count, version, CUDART_VERSION, date);
    std::fflush(out);
}

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: copy_engines OUT.jsonl [SECONDS]\n"), 2;
    stop_after = argc > 2 ? std::atof(argv[2]) : 1e9;
    begun = Clock::now();
    out = std::fopen(argv[1], "w");
    if (out == nullptr) return std::perror(argv[1]), 2;
    prepare();
    std::fprintf(stderr, "prepared after %.1f s\n", seconds_since(begun));
    alone();
    std::fprintf(stderr, "alone until %.1f s\n", seconds_since(begun));
    beside();
    std::fprintf(stderr, "beside until %.1f s\n", seconds_since(begun));
    std::_Exit(0);  // NCCL's finalisation is not measured
}
