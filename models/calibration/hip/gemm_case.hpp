#pragma once

#include "models/calibration/hip/case_list.hpp"
#include "models/calibration/hip/gemm.hpp"

namespace overlap::hip {

/// The keys m, n, k, dtype, beta, units, which all questions about GEMMs share.
inline std::vector<Key> gemm_keys(std::vector<Key> more) {
    std::vector<Key> keys = {{"m"},
                             {"n"},
                             {"k"},
                             {"dtype", Type::word, "bf16", {"bf16", "fp16", "fp8"}},
                             {"beta", Type::word, "0", {"0", "1"}},
                             {"units", Type::count, "0"}};
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
}

inline GemmShape gemm_shape(const Case& c) {
    return {c.count("m"),          c.count("n"),
            c.count("k"),          dtype_of(c.word("dtype")),
            c.word("beta") == "1", static_cast<int>(c.count("units"))};
}

}  // namespace overlap::hip
