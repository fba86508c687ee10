#pragma once

#include <string>
#include <vector>

namespace overlap {

/// What a reader of a run's numbers is told beside them.
struct Remarks {
    std::string gemm_library;  ///< whose kernels the prices of its GEMMs are of; empty: not known, or none
    std::vector<std::string> notes;  ///< one line each: what is not as the user may think
};

}  // namespace overlap
