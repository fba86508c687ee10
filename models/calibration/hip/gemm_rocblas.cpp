// Library GEMM on AMD: rocBLAS, loaded at run time. Debian 12 packages no rocBLAS, so this file declares the
// four functions it uses, after rocBLAS's C API
// (library/include/internal/rocblas-types.h, stable since ROCm 3).
#if !defined(__CUDACC__)

#include <dlfcn.h>

#include "models/calibration/hip/gemm.hpp"

namespace overlap::hip {
namespace {

using Handle = void*;
using Status = int;  // 0: success
constexpr int operation_none = 111, type_f16 = 150, type_f32 = 151, type_bf16 = 168, algorithm_standard = 0;

struct RocBlas {
    Status (*create_handle)(Handle*) = nullptr;
    Status (*destroy_handle)(Handle) = nullptr;
    Status (*set_stream)(Handle, hipStream_t) = nullptr;
    Status (*version)(char*, std::size_t) = nullptr;
    Status (*gemm)(Handle, int, int, int m, int n, int k, const void* alpha, const void* a, int a_type,
                   int lda, const void* b, int b_type, int ldb, const void* beta, const void* c, int c_type,
                   int ldc, void* d, int d_type, int ldd, int compute_type, int algorithm,
                   std::int32_t solution, std::uint32_t flags) = nullptr;
    std::string missing;

    RocBlas() {
        void* library = nullptr;
        for (const char* name : {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so"})
            if (!library) library = dlopen(name, RTLD_NOW);
        if (!library) {
            missing =
                "no rocBLAS: librocblas.so is not found; on a ROCm machine add /opt/rocm/lib to "
                "LD_LIBRARY_PATH";
            return;
        }
        load(library, "rocblas_create_handle", create_handle);
        load(library, "rocblas_destroy_handle", destroy_handle);
        load(library, "rocblas_set_stream", set_stream);
        load(library, "rocblas_get_version_string", version);
        load(library, "rocblas_gemm_ex", gemm);
    }

    template <class Function>
    void load(void* library, const char* name, Function& function) {
        function = reinterpret_cast<Function>(dlsym(library, name));
        if (!function) missing = std::string("no rocBLAS: it has no ") + name;
    }
};

const RocBlas& rocblas() {
    static const RocBlas library;
    return library;
}

void check_blas(Status status, const char* what) {
    if (status != 0) throw GpuError(std::string("rocBLAS: ") + what + ": status " + std::to_string(status));
}

/// rocBLAS is column-major: Cᵀ = Bᵀ·Aᵀ, so its first operand is B and its m is our n.
class RocBlasGemm : public Gemm {
public:
    explicit RocBlasGemm(const GemmShape& shape) : shape_(shape) {
        if (!rocblas().missing.empty()) throw GpuError(rocblas().missing);
        if (shape.dtype == DType::fp8) throw Skipped("rocBLAS takes no fp8 here: bf16 or fp16");
        if (shape.units) throw Skipped("rocBLAS takes no limit on compute units: units=0");
        check_blas(rocblas().create_handle(&handle_), "create_handle");
    }
    RocBlasGemm(const RocBlasGemm&) = delete;
    RocBlasGemm& operator=(const RocBlasGemm&) = delete;
    ~RocBlasGemm() override { rocblas().destroy_handle(handle_); }

    void run(const void* a, const void* b, void* c, hipStream_t stream) override {
        const int m = static_cast<int>(shape_.m), n = static_cast<int>(shape_.n),
                  k = static_cast<int>(shape_.k);
        const int lda = static_cast<int>(shape_.a_pitch ? shape_.a_pitch : shape_.k),
                  ldb = static_cast<int>(shape_.b_pitch ? shape_.b_pitch : shape_.n),
                  ldc = static_cast<int>(shape_.c_pitch ? shape_.c_pitch : shape_.n);
        const int type = shape_.dtype == DType::fp16 ? type_f16 : type_bf16;
        const float alpha = 1, beta = shape_.accumulate ? 1.0f : 0.0f;
        check_blas(rocblas().set_stream(handle_, stream), "set_stream");
        check_blas(
            rocblas().gemm(handle_, operation_none, operation_none, n, m, k, &alpha, b, type, ldb, a, type,
                           lda, &beta, c, type, ldc, c, type, ldc, type_f32, algorithm_standard, 0, 0),
            "gemm_ex");
    }

    std::string algorithm() const override { return "standard"; }

private:
    GemmShape shape_;
    Handle handle_ = nullptr;
};

}  // namespace

std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, void*) {
    return std::make_unique<RocBlasGemm>(shape);
}

std::string gemm_library() {
    if (!rocblas().missing.empty()) return rocblas().missing;
    char version[256] = "";
    check_blas(rocblas().version(version, sizeof version), "get_version_string");
    return std::string("rocBLAS ") + version;
}

}  // namespace overlap::hip
#endif
