#pragma once

#include "models/calibration.hpp"
#include "sim/calibrate/recipes/kernel_recipes.hpp"

namespace overlap {

/// Log-normal prior of a fit: each field is within a factor `spread` of `start` two times in three.
template <class P>
struct KernelPrior {
    P start;
    double spread = 2;
    std::string fixed_source;  ///< of the fields that are not fitted
    /// An optional field that is written even where the table says nothing about it
    std::string_view estimated = {};
};

/// Rates come from the device's fitted GEMMs; the other numbers are estimates of their order of magnitude.
KernelPrior<PrefillParameters> prefill_prior(const KernelSource& source, const Calibration& gemms);
KernelPrior<DecodeParameters> decode_prior(const KernelSource& source, const Calibration& gemms);
KernelPrior<MoeParameters> moe_prior(const std::string& format, const Calibration& gemms);
KernelPrior<ExchangeParameters> exchange_prior(const std::string& kernel);

}  // namespace overlap
