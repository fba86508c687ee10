#pragma once

#include <cmath>
#include <cstddef>

namespace overlap {

/// Size of copy `number` of a chain whose copies have half to all of `size`, a multiple of 4096: evenly spread, in
/// steps of the golden ratio, the first of all of it. Equal copies beside equal GEMMs can lock into a rhythm.
inline std::size_t spread_size(std::size_t size, int number) {
    const double golden = 0.6180339887498949, steps = number * golden;
    const auto pages = static_cast<double>(size / 4096);
    return static_cast<std::size_t>(std::ceil(pages * (1 - (steps - std::floor(steps)) / 2))) * 4096;
}

}  // namespace overlap
