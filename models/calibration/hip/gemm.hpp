#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "models/calibration/hip/data.hpp"

namespace overlap::hip {

/// C[m,n] = A[m,k]·B[k,n] + beta·C, row-major; fp8: B is given as [n,k], the only layout its kernels take.
struct GemmShape {
    std::int64_t m = 0, n = 0, k = 0;
    DType dtype = DType::bf16;
    bool accumulate = false;                             ///< beta = 1, else 0
    int units = 0;                                       ///< compute units that the library may use; 0: all
    std::int64_t a_pitch = 0, b_pitch = 0, c_pitch = 0;  ///< elements from row to row; 0: dense
};

/// One GEMM of the platform's library on the GPU that was current when it was made: cuBLASLt (first algorithm
/// of its heuristic, 32 MiB workspace), or rocBLAS. A plan is for one stream at a time, for its workspace's
/// sake.
class Gemm {
public:
    virtual ~Gemm() = default;
    virtual void run(const void* a, const void* b, void* c, hipStream_t stream) = 0;
    /// What the library chose, as it names it.
    virtual std::string algorithm() const = 0;
};

/// Throws GpuError where the library does not take the shape. rocBLAS takes neither fp8 nor a limit on
/// compute units. `workspace`: gemm_workspace_bytes on that GPU that plans of one stream may share; null: its
/// own.
std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, void* workspace = nullptr);
inline constexpr std::size_t gemm_workspace_bytes = std::size_t{32} << 20;  // cuBLAS's own default on Hopper
/// "cuBLASLt 13.0.2", say; the reason where there is none.
std::string gemm_library();

/// Operands with room for a few sets, so that each run finds its A and C cold, as chunks that have just
/// arrived are.
class GemmOperands {
public:
    /// Takes memory of `gpu` and fills it.
    GemmOperands(class Machine& machine, int gpu, const GemmShape& shape);
    /// The operands of the i-th run. B is the same for all unless `cold_weights`.
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
