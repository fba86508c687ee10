#pragma once

#include <cstdint>

#include "models/gemm_parameters.hpp"
#include "models/overlap_gemm.hpp"
#include "sim/core/operators.hpp"
#include "sim/core/units.hpp"

namespace overlap {

/// One GEMM alone on one GPU: how long, and what it asks of the GPU.
struct GemmEstimate {
    Seconds launch;                 ///< fixed part
    Seconds body;                   ///< running part; the GEMM takes launch + body
    Bytes hbm_traffic;              ///< read + written, with re-reads that miss the last-level cache
    double compute_units_busy = 0;  ///< mean number of units that hold a tile while the body runs
    std::int64_t tile_m = 0;
    std::int64_t tile_n = 0;
    std::int64_t split_k = 1;
    double waves = 0;  ///< tiles · split_k / compute units
    /// The share of the body at which a last wave begins that leaves compute units idle, and its tiles; 1 and
    /// 0 where there is none.
    double last_wave = 1;
    double last_tiles = 0;

    Seconds total() const { return launch + body; }
};

/// Time and demands of C[M,N] (+)= A[M,K]·B[K,N], kernel time as a GPU profiler shows it (no host launch
/// gap).
///
/// Like a library's heuristic, takes the fastest of the calibrated macro-tiles and of split-K 1…16:
///   tile     = 2·tm·tn·⌈K/s⌉·stride / (peak/units · efficiency) + tile_fixed + tile_epilogue · tm·tn/128²
///   stride   = 1 + stride_loss · kB of K, where rows of A and B are multiples of 512 B (see
///   overlap_gemm.hpp) compute  = tile · (full waves + tail_floor + (1 − tail_floor)·f), f the
///   filled share of the last wave memory   = (A + B + C + re-reads·miss) / rate, the rate limited by HBM and
///   by the units that are active body     = (compute^p + memory^p)^(1/p) + split-K reduction body    *= 1 +
///   sustained_slowdown · t/(t + sustained_time), t = max(body, busy): the power cap
///
/// `busy` is how long the GPU computes without a pause around this GEMM. Parts of a large GEMM that run back
/// to back heat the chip as the whole does: pass the whole's body, or the parts look faster than they are (by
/// up to `sustained_slowdown`). On H200 measured: no loss up to about 40 ms, then steps to 12–18 %, smoothed
/// here. The public tables were measured on repetitions of one shape, so elsewhere this is an estimate.
///
/// `accumulate` reads C as well: its bytes are added to memory and the epilogue doubles (an estimate: no
/// public table has beta = 1; on H200, K-slabs of 50 µs and more come out 1 % high on average, those with K
/// of 256 to 512 up to 12 % low).
///
/// Growing M, N or K never shortens it, except that a GEMM too small to draw the full memory bandwidth can
/// gain up to 15 % from more units, and that a K that is no multiple of 512 B can be faster than a smaller
/// one. Pure, about 1 µs a call, positive for every m, n, k ≥ 1 (asserted). Mean error on (N,K) families that
/// the fit has not seen: 3 % on MI300X fp8, 5 % on H100 bf16 and on MI355X bf16 where the kernel library is
/// known (models/gemm_libraries.hpp) for kernels of 20 µs and more, 2 % on H200 for 50 µs and more; see
/// configs/calibrations/ for each device. Ignores: operand layouts, leading dimensions other than K, cache
/// left warm by the kernel before, data-dependent power.
///
/// A batch is one kernel over the tiles of all its GEMMs (an estimate: no public table has batches).
///
/// `units`: compute units that the kernel may use, of those that the parameters are for; 0: all. The library
/// picks tile and split as if it had all, since a mask of its stream is not known to it; each unit keeps its
/// rate. Ignores: a clock that may rise, and caches that thrash less, with fewer units at work.
GemmEstimate estimate_gemm(const GemmShape& shape, const GemmParameters& parameters, Seconds busy = {},
                           int units = 0);

/// The parameters as the formulas take them: plain SI numbers (models/overlap_gemm.hpp).
overlap_advice::GemmConstants to_constants(const GemmParameters& parameters);

}  // namespace overlap
