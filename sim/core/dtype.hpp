#pragma once

#include <array>
#include <string>

#include "sim/core/units.hpp"

namespace overlap {

/// Element types of GEMM operands and of communicated data.
enum class DType { fp32, tf32, fp16, bf16, fp8, int8, fp4 };

inline const std::array<std::string, 7> dtype_names{"fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"};

inline const std::string& name_of(DType dtype) {
    return dtype_names[static_cast<std::size_t>(dtype)];
}

/// Bytes of one element in memory.
constexpr Bytes element_size(DType dtype) {
    switch (dtype) {
        case DType::fp32:
        case DType::tf32:
            return Bytes(4);
        case DType::fp16:
        case DType::bf16:
            return Bytes(2);
        case DType::fp8:
        case DType::int8:
            return Bytes(1);
        case DType::fp4:
            return Bytes(0.5);
    }
    return Bytes(0);
}

/// Type of C: GEMMs on 8- and 4-bit operands write bf16, the others write their own type (library default).
constexpr DType output_type(DType dtype) {
    const bool narrow = dtype == DType::fp8 || dtype == DType::int8 || dtype == DType::fp4;
    return narrow ? DType::bf16 : dtype == DType::tf32 ? DType::fp32 : dtype;
}

}  // namespace overlap
