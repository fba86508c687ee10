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
            return std::tuple(s.dtype, s.accumulate, s.n, s.k, s.m, s.batch);
        };
        return key(a) < key(b);
    }
};

/// Library GEMMs that were measured alone: the kernel time of each shape, run back to back, mean over GPUs.
using GemmTimes = std::map<GemmShape, Seconds, ByShape>;

/// The group `measured_gemms` of a calibration: {"provenance": {…}, "bf16_us": {"8192x2560x8192": 413.2, …},
/// "bf16_accumulated_us": {…}}. Empty where the file has none. Throws UserError on anything unknown or out of
/// range.
GemmTimes read_gemm_times(const std::filesystem::path& path);
GemmTimes read_gemm_times(const ConfigFile& file);

/// The group's key for GEMMs of a kind: "bf16_us", or "bf16_accumulated_us" where C is read as well.
std::string gemm_times_key(DType dtype, bool accumulate);

}  // namespace overlap
