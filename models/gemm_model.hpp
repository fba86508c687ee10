#pragma once

#include <cstdint>

#include "models/gemm_parameters.hpp"
#include "sim/core/operators.hpp"
#include "sim/core/units.hpp"

namespace overlap {

/// Time and demands of one GEMM alone on one GPU.
struct GemmEstimate {
    Seconds launch;                 ///< time before the body, independent of the shape
    Seconds body;                   ///< the GEMM takes launch + body
    Bytes hbm_traffic;              ///< read + written, with re-reads that miss the last-level cache
    double compute_units_busy = 0;  ///< mean number of units that hold a tile while the body runs
    std::int64_t tile_m = 0;
    std::int64_t tile_n = 0;
    std::int64_t split_k = 1;
    double waves = 0;  ///< tiles · split_k / compute units
    /// Fraction of the body at which a partial last wave begins, and the tiles of that wave. 1 and
    /// 0 if all waves are full.
    double last_wave = 1;
    double last_tiles = 0;

    Seconds total() const { return launch + body; }
};

/// How a GEMM is run, beside what the parameters describe.
struct GemmRun {
    int units = 0;               ///< compute units that it may use; 0: all
    CuMask mask = CuMask::even;  ///< which these are
    bool persistent = false;     ///< the kernel of a schedule that programs its own GEMM
    bool warm = false;           ///< B lies in a cache
    friend bool operator==(const GemmRun&, const GemmRun&) = default;
};

/// Time and demands of C[M,N] (+)= A[M,K]·B[K,N]. The time is the kernel time that a GPU profiler shows,
/// without host launch gaps.
///
/// Like a library's heuristic, the model takes the fastest of the calibrated macro-tiles and of split-K 1…16:
///   tile    = 2·tm·tn·⌈K/s⌉·stride / (peak/units · efficiency) + tile_fixed + tile_epilogue · tm·tn/128²
///   stride  = 1 + stride_loss · kB of K, if rows of A and B are multiples of 512 B (gemm_tiling.hpp)
///   compute = tile · (full waves + tail_floor + (1 − tail_floor)·f), f = filled fraction of the last wave
///   memory  = memory_start + (A + B + C + re-reads·miss) / rate, rate limited by HBM and by the active compute units
///   body    = (compute^p + memory^p)^(1/p) + split-K reduction
///   body   += bytes of A in bf16 / quantise rate, where the timed operator quantises A itself
///   compute *= 1 + sustained_slowdown · t/(t + sustained_time), t = max(body, busy): the power cap.
///             Where memory_start is not known, the factor of t = body is on body
///
/// `busy`: how long the GPU computes without a pause around this GEMM. Parts of a large GEMM that run back to
/// back heat the chip like the whole GEMM: pass the body of the whole, or the parts look too fast by up to
/// `sustained_slowdown`. Measured on H200: no loss up to about 40 ms, then steps to 12–18 %, smoothed here.
/// Elsewhere an estimate, because the public tables were measured on repetitions of one shape.
///
/// `accumulate` also reads C: memory grows by its bytes, and the epilogue doubles. An estimate, because no
/// public table has beta = 1; on H200, K-slabs of 50 µs and more are predicted 1 % too long on average, those
/// with K of 256 to 512 up to 12 % too short.
///
/// A larger M, N or K never makes a GEMM faster, with two exceptions: a GEMM too small to draw the full
/// memory bandwidth can gain up to 15 % from more units (bf16 on Blackwell 23 %), and a K that is no multiple of
/// 512 B can be faster than a smaller K. Pure, about 1 µs a call, positive for every m, n, k ≥ 1 (asserted).
///
/// Mean error on (N,K) families that the fit has not seen: 3 % on MI300X fp8; 5 % on H100 bf16, and on MI355X
/// bf16 where the kernel library is known (models/gemm_libraries.hpp), for kernels of 20 µs and more; 2 % on
/// H200 for 50 µs and more. configs/calibrations/ has the errors of each device. Ignored: operand layouts,
/// leading dimensions other than K, caches left warm by the kernel before, data-dependent power.
///
/// A batch is one kernel over the tiles of all its GEMMs (an estimate: no public table has batches).
///
/// `run.units`: compute units that the kernel may use, of those that the parameters describe; 0: all. The library
/// picks tile and split as if it had all units, because it does not know the CU mask of its stream. Where
/// `engines` is given (MI300X bf16), each engine gets a part of the tiles that does not depend on the mask and works
/// through it in rounds. Tiles of a round take as long as the number of units at work says: fewer run faster each
/// (`lone_unit_speed`), and what they share costs more with large operands (`mask_loss`, or `reserved_loss` where the
/// mask is even). Elsewhere tiles go to any unit, and each unit keeps its rate.
/// `run.persistent` (`work_group_fused`, `flag_gated`): a kernel with one
/// work-group on each of `units`. The tile is the fastest for that number, K is not split (flags are set by finished
/// tiles), and work-groups take tiles in turn, so engines need not have equally many units.
///
/// `run.warm`: memory needs no `memory_start`.
GemmEstimate estimate_gemm(const GemmShape& shape, const GemmParameters& parameters, Seconds busy = {},
                           const GemmRun& run = {});

/// Factor on the body of a GEMM while `lost` units of every shader engine are taken; every engine counts as the
/// smallest. Beside 8192^3 on MI300X, 1,184 tiles are 37 an engine: on 8 units five rounds instead of four. 1 where
/// engines are not known.
double slowed_by_lost_units(const GemmShape& shape, const GemmParameters& parameters, Seconds busy, int lost);

}  // namespace overlap
