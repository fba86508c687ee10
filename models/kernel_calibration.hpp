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
    /// Name of the library whose kernels a fit describes, or empty. `fit`: "moe/bf16_torch".
    std::string library_of(const std::string& fit) const {
        const auto found = libraries.find(fit);
        return found == libraries.end() ? "" : found->second;
    }

    /// Keys: prefill_format, of decode the cache's kernel_format; of kernels alone the names that attention_fit() gives
    std::map<std::string, PrefillParameters> prefill;
    std::map<std::string, DecodeParameters> decode;
    /// By format of the operands: "bf16", "fp8_block", …; of grouped GEMMs alone "bf16_torch"
    std::map<std::string, MoeParameters> moe;
    std::map<std::string, ExchangeParameters> exchange;  ///< by kernel: exchange_kernel()
    std::map<std::string, std::string> libraries;        ///< see library_of
    /// Whose kernels are priced where there are fits of several libraries; empty: of attention those of kernels alone, of
    /// grouped GEMMs those of fused layers
    std::string attention_library, grouped_library;
};

/// "bf16", or "bf16_fp8": products in bf16 and a cache in fp8. fp16 counts as bf16.
std::string prefill_format(DType products, DType cache);
std::string kernel_format(DType dtype);

/// "deepep_dispatch", "deepep_combine", "deepep_low_latency_dispatch" or "deepep_low_latency_combine".
std::string exchange_kernel(const ExpertExchange& exchange);

/// Suffixes in the names of fits: to attention's kernel alone, and to that kernel's backward pass. A fit without such
/// a suffix is of the public tables' operator, which also rotates queries and keys and writes the cache.
inline const std::string kernel_alone = "_kernel", backward_alone = "_kernel_backward";
/// Name of the fit that prices `call`: of the kernel alone where there is one, because lists have rotations apart. With an
/// `attention_library` that of the library, where it has the format.
std::string attention_fit(const KernelCalibration& fits, const AttentionCall& call);

/// Name of the fit that prices grouped GEMMs on operands of a type: that of `grouped_library`, where it has the type.
std::string grouped_fit(const KernelCalibration& fits, DType operands);
/// The fits of grouped GEMMs on operands of a type: of kernels for many rows, of those for few ("fp4_min_latency"), or of
/// both.
std::vector<MoeParameters> grouped_fits(const KernelCalibration& fits, DType operands);

/// The parameters of `format`, or null.
template <class P>
const P* find_fit(const std::map<std::string, P>& fits, const std::string& format) {
    const auto found = fits.find(format);
    return found == fits.end() ? nullptr : &found->second;
}

/// The libraries that fits of a group of kernel_groups name, sorted.
std::vector<std::string> libraries_in(const ConfigFile& file, const std::string& group);
/// The value of `key`, one of `names`; empty where the file leaves it out. Throws UserError, which says which are allowed.
std::string chosen_library(ConfigObject& config, const std::string& key,
                           const std::vector<std::string>& names);

/// The four groups of a calibration file, and whose fits of several are priced (attention_library, grouped_library, or a
/// gemm_library that has grouped GEMMs); each may be missing. Throws UserError.
KernelCalibration read_kernel_calibration(const ConfigFile& file);

/// Schema of one of `kernel_groups`.
Json kernel_group_schema(const std::string& group);

}  // namespace overlap
