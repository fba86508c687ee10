#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/calibrate/measurements/kernel_rows.hpp"
#include "sim/core/config_reader.hpp"

namespace overlap {

/// A table of attention or MoE kernels of a device: a public one, or one of `traces/` of attention's kernels alone.
struct KernelSource {
    std::string device;
    KernelTableKind kind = KernelTableKind::prefill;
    std::string file = {};  ///< in the folder of the public data, or in traces/
    std::string origin = {}, licence = {}, library = {};
    /// Query heads of a key head from which decode's tensor-core kernel serves, and how the table shows it
    double grouped_from = 2, grouped_to = 32;
    std::string grouped_source = {};
    double prior_spread = 2;  ///< of prefill: how far off priors are, a factor (KernelPrior::spread)
    /// Measured by us, of kernels alone: its fits have names of their own (kernel_alone; of grouped GEMMs the library's)
    bool alone = false;
};

/// A device without a table of its own: the fits of another one, scaled.
struct KernelDerivation {
    std::string device, from, reason;
    bool alone = false;  ///< only those of kernels alone
};

struct KernelRecipes {
    std::vector<KernelSource> tables;
    std::vector<KernelDerivation> derived;
};

/// The key "kernels" of every recipe in `folder` (configs/calibrations/recipes). Throws UserError.
KernelRecipes read_kernel_recipes(const std::filesystem::path& folder);

/// JSON schema of that key.
Json kernel_recipe_schema();

}  // namespace overlap
