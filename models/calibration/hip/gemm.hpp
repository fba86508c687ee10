#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "models/calibration/hip/data.hpp"

namespace overlap::hip {

/// C[m,n] = A[m,k]·B[k,n] + beta·C, row-major. fp8: B is given as [n,k], the only layout of fp8 kernels.
struct GemmShape {
    std::int64_t m = 0, n = 0, k = 0;
    DType dtype = DType::bf16;
    bool accumulate = false;                             ///< beta = 1, else 0
    int units = 0;                                       ///< compute units that the library may use; 0: all
    std::int64_t a_pitch = 0, b_pitch = 0, c_pitch = 0;  ///< elements from row to row; 0: dense
};

/// One GEMM of the platform's library on the GPU that was current at its creation: cuBLASLt (first
/// algorithm of its heuristic, 32 MiB workspace) or rocBLAS. Use a plan on one stream at a time,
/// because it has one workspace.
class Gemm {
public:
    virtual ~Gemm() = default;
    virtual void run(const void* a, const void* b, void* c, hipStream_t stream) = 0;
    /// The chosen algorithm, in the library's terms.
    virtual std::string algorithm() const = 0;
};

/// Throws GpuError if the library does not support the shape. rocBLAS supports neither fp8 nor a limit on
/// compute units. `workspace`: gemm_workspace_bytes on that GPU, which plans of one stream may share; null:
/// the plan allocates its own.
std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, void* workspace = nullptr);
inline constexpr std::size_t gemm_workspace_bytes = std::size_t{32} << 20;  // cuBLAS's own default on Hopper
/// For example "cuBLASLt 13.0.2"; the reason if there is no library.
std::string gemm_library();

/// How many operands of `bytes` evict each other from a last-level cache of up to 256 MiB.
std::int64_t sets_of(std::int64_t bytes);
/// Compares sampled entries of C, which was poisoned before, with a plain kernel. On the current GPU, which has ended its
/// work. Throws WrongResult.
void compare_result(const GemmShape& shape, const void* a, const void* b, const void* c);

/// Several sets of operands, so that each run finds its A and C cold in cache,
/// like chunks that have just arrived.
class GemmOperands {
public:
    /// Takes memory of `gpu` and fills it.
    GemmOperands(class Machine& machine, int gpu, const GemmShape& shape);
    /// Runs with the operands of run `i`. All runs share B unless `cold_weights`.
    void run(Gemm& gemm, std::int64_t i, hipStream_t stream, bool cold_weights = false) const;
    /// Runs once and compares sampled entries with a plain kernel. Throws WrongResult.
    void check_result(Gemm& gemm) const;

private:
    GemmShape shape_;
    int gpu_;
    std::int64_t a_bytes_, b_bytes_, c_bytes_, a_sets_, b_sets_, c_sets_;
    char *a_, *b_, *c_;
};

}  // namespace overlap::hip
