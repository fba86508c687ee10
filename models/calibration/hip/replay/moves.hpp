#pragma once

#include <vector>

#include "models/calibration/hip/copies.hpp"

namespace overlap::hip {

/// Rows of bf16 in the memory of one GPU; lengths and pitch are multiples of 16 bytes.
struct Place {
    void* memory = nullptr;
    Rows rows;
};

/// Packs and scatters: copies every block of `from` to the same block of `to`, in one kernel of two thread
/// blocks of 512 threads a compute unit. At most 16.
Operation move_operation(const std::vector<Place>& from, const std::vector<Place>& to, int compute_units);

/// Sum of the parts, added in fp32 in their order and rounded once, into `to`, which may be one of them. A
/// kernel of two thread blocks of 512 threads a compute unit. At most 16 parts.
Operation sum_operation(const std::vector<Place>& parts, const Place& to, int compute_units);

}  // namespace overlap::hip
