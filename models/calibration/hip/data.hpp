#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "models/calibration/hip/dtype.hpp"
#include "models/calibration/hip/gpu.hpp"

namespace overlap::hip {

/// A wrong result: a fault of the program, exit 1.
struct WrongResult : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// All of these run on the current GPU and have finished on return.

/// Words that depend on seed and position, so that a copy from a wrong position is found.
/// `bytes` is a multiple of 16.
void fill_words(void* memory, std::size_t bytes, std::uint64_t seed);
/// Uniform in [-1, 1).
void fill_elements(void* memory, std::size_t count, DType type, std::uint64_t seed);
/// All bits one: NaN in every float type, and never two such words in a row from `fill_words`.
void poison(void* memory, std::size_t bytes);

/// Rows of `row_bytes`, `pitch` apart.
struct Rows {
    std::size_t rows = 1, row_bytes = 0, pitch = 0;
};
/// Throws WrongResult unless `memory`, laid out as `here`, holds what `fill_words(seed)` wrote, from byte
/// `offset` on, into a buffer laid out as `there`.
void expect_words(const void* memory, Rows here, Rows there, std::size_t offset, std::uint64_t seed);

}  // namespace overlap::hip
