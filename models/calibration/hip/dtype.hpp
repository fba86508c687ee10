#pragma once

#include <cstddef>
#include <string>

namespace overlap::hip {

/// Types of matrix elements. fp8 is e4m3 (OCP), its results bf16.
enum class DType { bf16, fp16, fp8 };
inline DType dtype_of(const std::string& name) {
    return name == "fp8" ? DType::fp8 : name == "fp16" ? DType::fp16 : DType::bf16;
}
inline std::size_t bytes_of(DType type) {
    return type == DType::fp8 ? 1 : 2;
}
inline DType result_of(DType type) {
    return type == DType::fp8 ? DType::bf16 : type;
}

}  // namespace overlap::hip
