#pragma once

// HIP on both platforms: when nvcc compiles, the HIP names used here map one to one onto CUDA. We have our
// own map because Debian's HIP 5.2 headers for NVIDIA do not compile with CUDA 13.

#include <source_location>
#include <stdexcept>
#include <string>

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define hipDeviceAttributeClockRate cudaDevAttrClockRate
#define hipDeviceAttributeL2CacheSize cudaDevAttrL2CacheSize
#define hipDeviceAttributeMemoryClockRate cudaDevAttrMemoryClockRate
#define hipDeviceAttributeMultiprocessorCount cudaDevAttrMultiProcessorCount
#define hipDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define hipDeviceEnablePeerAccess cudaDeviceEnablePeerAccess
#define hipDeviceGetAttribute cudaDeviceGetAttribute
#define hipDeviceGetPCIBusId cudaDeviceGetPCIBusId
#define hipDeviceGetStreamPriorityRange cudaDeviceGetStreamPriorityRange
#define hipDeviceProp_t cudaDeviceProp
#define hipDeviceSynchronize cudaDeviceSynchronize
#define hipDriverGetVersion cudaDriverGetVersion
#define hipError_t cudaError_t
#define hipErrorPeerAccessAlreadyEnabled cudaErrorPeerAccessAlreadyEnabled
#define hipEvent_t cudaEvent_t
#define hipEventCreateWithFlags cudaEventCreateWithFlags
#define hipEventDefault cudaEventDefault
#define hipEventDisableTiming cudaEventDisableTiming
#define hipEventElapsedTime cudaEventElapsedTime
#define hipEventRecord cudaEventRecord
#define hipEventSynchronize cudaEventSynchronize
#define hipFree cudaFree
#define hipGetDeviceCount cudaGetDeviceCount
#define hipGetDeviceProperties cudaGetDeviceProperties
#define hipGetErrorString cudaGetErrorString
#define hipGetLastError cudaGetLastError
#define hipHostMalloc cudaHostAlloc
#define hipHostMallocMapped cudaHostAllocMapped
#define hipHostMallocPortable cudaHostAllocPortable
#define hipMalloc cudaMalloc
#define hipMemcpy cudaMemcpy
#define hipMemcpy2DAsync cudaMemcpy2DAsync
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemcpyDeviceToDevice cudaMemcpyDeviceToDevice
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define hipMemcpyPeerAsync cudaMemcpyPeerAsync
#define hipMemset cudaMemset
#define hipMemsetAsync cudaMemsetAsync
#define hipRuntimeGetVersion cudaRuntimeGetVersion
#define hipSetDevice cudaSetDevice
#define hipStream_t cudaStream_t
#define hipStreamCreateWithPriority cudaStreamCreateWithPriority
#define hipStreamNonBlocking cudaStreamNonBlocking
#define hipStreamSynchronize cudaStreamSynchronize
#define hipStreamWaitEvent cudaStreamWaitEvent
#define hipSuccess cudaSuccess
#else
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#endif

namespace overlap::hip {

/// A failed call of the runtime or of a GPU library: a fault of the program (exit 1), not of the user.
struct GpuError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The machine can't run the case: noted in the results, not an error.
struct Skipped : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void check(hipError_t status, std::source_location where = std::source_location::current()) {
    if (status != hipSuccess)
        throw GpuError(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " +
                       hipGetErrorString(status));
}

/// Call it after every kernel launch.
inline void check_launch(std::source_location where = std::source_location::current()) {
    check(hipGetLastError(), where);
}

#if defined(__CUDACC__)
inline constexpr bool on_nvidia = true;

/// Loads and stores of flags that other GPUs and the host also access.
__device__ inline int load_system(const int* flag) {
    int value;
    asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}
__device__ inline void store_system(int* flag, int value) {
    asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
/// A clock whose rate does not depend on the core clock.
__device__ inline long long nanoseconds() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
/// The SM or compute unit that the caller runs on.
__device__ inline unsigned compute_unit() {
    unsigned unit;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(unit));
    return unit;
}
/// Device memory in which a kernel of another GPU may set a flag while a kernel on this GPU polls it.
inline hipError_t malloc_flag(void** memory, std::size_t bytes) {
    return hipMalloc(memory, bytes);
}
/// Shared memory that keeps a second thread block off the compute unit.
inline constexpr int whole_unit_shared_bytes = 160 * 1024;
template <class Kernel>
void allow_shared(Kernel kernel, int bytes) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}
#else
inline constexpr bool on_nvidia = false;

__device__ inline int load_system(const int* flag) {
    return __hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ inline void store_system(int* flag, int value) {
    __hip_atomic_store(flag, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ inline long long nanoseconds() {
    return static_cast<long long>(__builtin_amdgcn_s_memrealtime()) * 10;  // 100 MHz on gfx90a and gfx942
}
/// Number within the accelerator complex die (XCD): units of different dies have the same numbers.
__device__ inline unsigned compute_unit() {
    return __smid();
}
/// Coarse-grained memory, hipMalloc's default, is coherent between GPUs only at kernel boundaries.
inline hipError_t malloc_flag(void** memory, std::size_t bytes) {
    return hipExtMallocWithFlags(memory, bytes, hipDeviceMallocFinegrained);
}
inline constexpr int whole_unit_shared_bytes = 64 * 1024;  // all of a compute unit's LDS; needs no opt-in
template <class Kernel>
void allow_shared(Kernel, int) {}
#endif

}  // namespace overlap::hip
