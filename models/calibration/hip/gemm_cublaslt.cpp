// Library GEMM on NVIDIA: cuBLASLt, the first algorithm of its heuristic.
#if defined(__CUDACC__)

#include <cublasLt.h>

#include <map>

#include "models/calibration/hip/gemm.hpp"

namespace overlap::hip {
namespace {

void check_blas(cublasStatus_t status, std::source_location where = std::source_location::current()) {
    if (status != CUBLAS_STATUS_SUCCESS)
        throw GpuError(std::string(where.file_name()) + ":" + std::to_string(where.line()) +
                       ": cuBLASLt: " + cublasLtGetStatusString(status));
}

cudaDataType_t library_type(DType type) {
    return type == DType::fp8 ? CUDA_R_8F_E4M3 : type == DType::fp16 ? CUDA_R_16F : CUDA_R_16BF;
}

/// One handle for each GPU, cached: creating one takes a millisecond.
cublasLtHandle_t handle_of_current_gpu() {
    static std::map<int, cublasLtHandle_t> handles;
    int gpu = 0;
    check(cudaGetDevice(&gpu));
    const auto [place, added] = handles.try_emplace(gpu, nullptr);
    if (added) check_blas(cublasLtCreate(&place->second));
    return place->second;
}

/// cuBLASLt is column-major: Cᵀ = Bᵀ·Aᵀ, so its first operand is B and its m is our n.
class CublasLtGemm : public Gemm {
public:
    CublasLtGemm(const GemmShape& shape, void* workspace)
        : beta_(shape.accumulate ? 1.0f : 0.0f),
          handle_(handle_of_current_gpu()),
          workspace_(workspace),
          owns_workspace_(workspace == nullptr) {
        check_blas(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
        const bool transposed = shape.dtype == DType::fp8;
        if (transposed) set(CUBLASLT_MATMUL_DESC_TRANSA, static_cast<std::int32_t>(CUBLAS_OP_T));
        if (shape.units) set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, static_cast<std::int32_t>(shape.units));
        const auto type = library_type(shape.dtype);
        check_blas(cublasLtMatrixLayoutCreate(&first_, type, transposed ? shape.k : shape.n,
                                              transposed ? shape.n : shape.k,
                                              pitch(shape.b_pitch, transposed ? shape.k : shape.n)));
        check_blas(
            cublasLtMatrixLayoutCreate(&second_, type, shape.k, shape.m, pitch(shape.a_pitch, shape.k)));
        check_blas(cublasLtMatrixLayoutCreate(&result_, library_type(result_of(shape.dtype)), shape.n,
                                              shape.m, pitch(shape.c_pitch, shape.n)));
        choose();
        if (owns_workspace_) check(hipMalloc(&workspace_, gemm_workspace_bytes));
    }

    CublasLtGemm(const CublasLtGemm&) = delete;
    CublasLtGemm& operator=(const CublasLtGemm&) = delete;

    ~CublasLtGemm() override {
        if (owns_workspace_) static_cast<void>(hipFree(workspace_));
        for (auto layout : {first_, second_, result_}) cublasLtMatrixLayoutDestroy(layout);
        cublasLtMatmulDescDestroy(description_);
    }

    void run(const void* a, const void* b, void* c, hipStream_t stream) override {
        const float alpha = 1;
        check_blas(cublasLtMatmul(handle_, description_, &alpha, b, first_, a, second_, &beta_, c, result_, c,
                                  result_, &choice_.algo, workspace_, gemm_workspace_bytes, stream));
    }

    std::string algorithm() const override {
        return "id " + attribute<std::int32_t>(CUBLASLT_ALGO_CONFIG_ID) + " tile " +
               attribute<std::uint32_t>(CUBLASLT_ALGO_CONFIG_TILE_ID) + " stages " +
               attribute<std::uint32_t>(CUBLASLT_ALGO_CONFIG_STAGES_ID) + " cluster " +
               attribute<std::uint16_t>(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID) + " inner " +
               attribute<std::uint16_t>(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID) + " splitk " +
               attribute<std::int32_t>(CUBLASLT_ALGO_CONFIG_SPLITK_NUM) + " reduction " +
               attribute<std::uint32_t>(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) + " swizzle " +
               attribute<std::uint32_t>(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING) + " custom " +
               attribute<std::uint32_t>(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION) + " waves " +
               std::to_string(choice_.wavesCount);
    }

private:
    static std::int64_t pitch(std::int64_t given, std::int64_t dense) { return given ? given : dense; }
    template <class Value>
    void set(cublasLtMatmulDescAttributes_t name, Value value) {
        check_blas(cublasLtMatmulDescSetAttribute(description_, name, &value, sizeof value));
    }

    void choose() {
        cublasLtMatmulPreference_t preference;
        check_blas(cublasLtMatmulPreferenceCreate(&preference));
        check_blas(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                        &gemm_workspace_bytes, sizeof gemm_workspace_bytes));
        int found = 0;
        const auto status = cublasLtMatmulAlgoGetHeuristic(handle_, description_, first_, second_, result_,
                                                           result_, preference, 1, &choice_, &found);
        cublasLtMatmulPreferenceDestroy(preference);
        if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0))
            throw Skipped("cuBLASLt has no algorithm for the shape and type");
        check_blas(status);
    }

    template <class Value>
    std::string attribute(cublasLtMatmulAlgoConfigAttributes_t name) const {
        Value value{};
        std::size_t written = 0;
        const auto status =
            cublasLtMatmulAlgoConfigGetAttribute(&choice_.algo, name, &value, sizeof value, &written);
        return status == CUBLAS_STATUS_SUCCESS ? std::to_string(value) : "?";
    }

    float beta_;
    cublasLtHandle_t handle_ = nullptr;
    cublasLtMatmulDesc_t description_ = nullptr;
    cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
    cublasLtMatmulHeuristicResult_t choice_{};
    void* workspace_ = nullptr;
    bool owns_workspace_;
};

}  // namespace

std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, void* workspace) {
    return std::make_unique<CublasLtGemm>(shape, workspace);
}

std::string gemm_library() {
    const std::size_t version = cublasLtGetVersion();  // 130002: 13.0.2
    return "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
}

}  // namespace overlap::hip
#endif
