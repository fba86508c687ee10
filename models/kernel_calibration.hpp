#pragma once

#include <map>
#include <string>

#include "models/attention_model.hpp"
#include "models/expert_exchange.hpp"
#include "models/moe_model.hpp"
#include "sim/core/dtype.hpp"
#include "sim/topology/derived_values.hpp"

namespace overlap {

/// Fits of a device's fused kernels, by number format. Empty where no table of the device was fitted.
struct KernelCalibration {
    /// Keys: prefill_format, of decode the cache's kernel_format; of kernels alone the names that attention_fit() gives
    std::map<std::string, PrefillParameters> prefill;
    std::map<std::string, DecodeParameters> decode;
    std::map<std::string, MoeParameters> moe;  ///< by format of the operands: "bf16", "fp8_block", …
    std::map<std::string, ExchangeParameters> exchange;  ///< by kernel: exchange_kernel()
};

/// "bf16", or "bf16_fp8": products in bf16 and a cache in fp8. fp16 counts as bf16.
std::string prefill_format(DType products, DType cache);
std::string kernel_format(DType dtype);

/// "deepep_dispatch", "deepep_combine", "deepep_low_latency_dispatch" or "deepep_low_latency_combine".
std::string exchange_kernel(const ExpertExchange& exchange);

/// Suffixes in the names of fits: to attention's kernel alone, and to that kernel's backward pass. A fit without such
/// a suffix is of the public tables' operator, which also rotates queries and keys and writes the cache.
inline const std::string kernel_alone = "_kernel", backward_alone = "_kernel_backward";
/// Name of the fit that prices `call`: of the kernel alone where there is one, because lists have rotations apart.
std::string attention_fit(const KernelCalibration& fits, const AttentionCall& call);

/// The fits of grouped GEMMs on operands of a type: of kernels for many rows, of those for few ("fp4_min_latency"), or of
/// both.
std::vector<MoeParameters> grouped_fits(const KernelCalibration& fits, DType operands);

/// The parameters of `format`, or null.
template <class P>
const P* find_fit(const std::map<std::string, P>& fits, const std::string& format) {
    const auto found = fits.find(format);
    return found == fits.end() ? nullptr : &found->second;
}

/// The four groups of a calibration file; each may be missing. Throws UserError.
KernelCalibration read_kernel_calibration(const ConfigFile& file);

/// Schema of one of `kernel_groups`.
Json kernel_group_schema(const std::string& group);

}  // namespace overlap
