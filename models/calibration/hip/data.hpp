#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "models/calibration/hip/dtype.hpp"
#include "models/calibration/hip/gpu.hpp"

namespace overlap::hip {

/// A result that is wrong: ours, exit 1.
struct WrongResult : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// All of these run on the current GPU and have finished on return.

/// Words that depend on seed and place: a copy from a wrong place shows. `bytes` is a multiple of 16.
void fill_words(void* memory, std::size_t bytes, std::uint64_t seed);
/// Uniform in [-1, 1).
void fill_elements(void* memory, std::size_t count, DType type, std::uint64_t seed);
/// All ones: not a number in every float type, and no word that `fill_words` writes in a row.
void poison(void* memory, std::size_t bytes);

/// Rows of `row_bytes`, `pitch` apart.
struct Rows {
    std::size_t rows = 1, row_bytes = 0, pitch = 0;
};
/// Throws WrongResult unless `memory`, laid out as `here`, holds what `fill_words(seed)` wrote into a buffer
/// laid out as `there`, from byte `offset` of it on.
void expect_words(const void* memory, Rows here, Rows there, std::size_t offset, std::uint64_t seed);

}  // namespace overlap::hip
