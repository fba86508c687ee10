#pragma once

#include <filesystem>
#include <map>
#include <tuple>

#include "sim/core/config_reader.hpp"
#include "sim/core/operators.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {

struct ByShape {
    bool operator()(const GemmShape& a, const GemmShape& b) const {
        const auto key = [](const GemmShape& s) {
            return std::tuple(s.dtype, s.weight_bits, s.accumulate, s.n, s.k, s.m, s.batch);
        };
        return key(a) < key(b);
    }
};

/// One library GEMM, measured alone.
struct MeasuredGemm {
    Seconds time;   ///< kernel time, run back to back, mean over GPUs
    int tiles = 0;  ///< tiles of C, times split-K; 0: not known
};

using GemmTimes = std::map<GemmShape, MeasuredGemm, ByShape>;

/// The group `measured_gemms` of a calibration: {"provenance": {…}, "bf16_us": {"8192x2560x8192": 413.2, …},
/// "bf16_tiles": {"8192x2560x8192": 640, …}, "bf16_accumulated_us": {…}, …}. A shape may lack its tiles, but
/// not its time. Empty if the file has no such group. Throws UserError for unknown or out-of-range values.
GemmTimes read_gemm_times(const std::filesystem::path& path);
GemmTimes read_gemm_times(const ConfigFile& file);
Json measured_gemms_schema();

/// Keys of the group: "bf16_us" and "bf16_tiles", or "bf16_accumulated_us" and "bf16_accumulated_tiles"
/// for GEMMs that also read C.
std::string gemm_times_key(DType dtype, bool accumulate);
std::string gemm_tiles_key(DType dtype, bool accumulate);

}  // namespace overlap
