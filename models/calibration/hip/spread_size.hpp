#pragma once

#include <cmath>
#include <cstddef>

namespace overlap {

/// Size of copy `number`, from 0, of a chain of copies whose sizes are spread evenly over half to all of `size`, in
/// steps of the golden ratio. `size` is a multiple of 4096, and so is each; copy 0 has all of `size`. Equal copies
/// would lock into a rhythm with equal GEMMs beside them.
inline std::size_t spread_size(std::size_t size, int number) {
    const double golden = 0.6180339887498949, steps = number * golden;
    const auto pages = static_cast<double>(size / 4096);
    return static_cast<std::size_t>(std::ceil(pages * (1 - (steps - std::floor(steps)) / 2))) * 4096;
}

}  // namespace overlap
