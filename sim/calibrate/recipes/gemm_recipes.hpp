#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/calibrate/recipes/gemm_prior.hpp"

namespace overlap {

/// A published single measurement that is in no table; it weighs more than a row.
struct GemmAnchor {
    std::int64_t m = 0, n = 0, k = 0;
    FlopsPerSecond rate;
    std::string source;

    GemmMeasurement measurement(DType dtype) const;
};

/// A public table, and the rows of it that count.
struct GemmTable {
    std::string file;  ///< in the folder of the public data
    std::string origin;
    GemmTableFilter filter;
};

/// How one device and dtype is fitted: rows of a public table, and the prior.
struct GemmRecipe : GemmTable {
    /// What the device has instead of the fit, where the rows are of a sibling.
    struct Deployed {
        double units = 0;  ///< compute units; 0: those of the rows
        /// Launch time, if the table's times include gaps between launches: the fit puts these gaps into the launch,
        /// and they are not shipped. 0: the fitted launch is shipped.
        Seconds launch;
        std::string launch_source;
    };

    std::string device;
    DType dtype = DType::bf16;
    std::string licence;
    GemmHardware hardware;  ///< from which `prior` follows
    GemmPrior prior;
    std::vector<GemmAnchor> anchors;
    Deployed deployed;
    std::string note;
    bool check_only = false;  ///< never fitted: the device's file is fitted to another kernel library
    /// If the filter names kernel libraries: prior of the fit to all rows from which the fits of the
    /// libraries start. It may have finer tiles than the mix can determine.
    std::optional<GemmPrior> start_of_libraries = {};
    std::string tiles_of_libraries = "";  ///< the name of these tiles
    std::string kernel_library = "";      ///< of the rows, shown with prices
    std::vector<GemmTable> more_tables = {};
    /// The calibration's name of the one kernel library whose rows these are, beside the device's other fit of this
    /// dtype; empty: the fit is the device's own.
    std::string of_library = {};
};

/// A dtype of a device that is fitted to our own microbenchmark results.
struct MeasuredGemmRecipe {
    std::string device;
    std::string machine;  ///< `device` in the first line of the files
    DType dtype = DType::bf16;
    /// With too few rows to start from scratch, the fit of another dtype is the prior: its rate times
    /// `rate_ratio`, everything else within `spread`.
    DType prior_dtype = DType::bf16;
    double rate_ratio = 1, rate_spread = 1.1, spread = 1.1;
    std::int64_t k_step = 64;
    GemmPrior prior;  ///< if prior_dtype is the dtype itself
    std::string note;
};

/// A dtype without a usable table: the parameters of another dtype with scaled rates.
struct GemmDerivation {
    struct Rates {
        double here = 1, there = 1;
        double ratio() const { return here / there; }
    };
    struct Source {
        std::string device;
        DType dtype = DType::bf16;
    };

    std::string device;
    DType dtype = DType::bf16;
    Source from;
    Rates rates, memory_rates;
    std::string reason;               ///< source of the ratios
    std::string of_library = {};      ///< as GemmRecipe::of_library
    std::string kernel_library = {};  ///< as GemmRecipe::kernel_library; empty: that of the source
    std::string note = "not checked against a table of this device and data type";
};

/// A public table as provenances name it.
inline std::string published_table(const std::string& file) {
    return "traces/published/" + file;
}

/// All recipes: one file for each device, and the macro-tiles of kernel libraries.
struct GemmRecipes {
    std::vector<GemmRecipe> tables;
    /// Ordered so that a prior comes before the recipes that start from it.
    std::vector<MeasuredGemmRecipe> measured;
    /// Ordered so that a source comes before what is derived from it.
    std::vector<GemmDerivation> derivations;
    TileLists tiles;
    /// The kernel library that a device's runs have unless they name another. Other devices: the mix of all.
    std::map<std::string, std::string> default_libraries = {};

    /// Those of any other machine, which its driver calls `machine`: the prior follows from the rates of its device.
    /// `platform`: "NVIDIA" or "AMD".
    std::vector<MeasuredGemmRecipe> of_machine(const DeviceSpec& device, const std::string& machine,
                                               const std::string& platform) const;
};

/// `folder`/<device>.json and `folder`/tiles.json, as in configs/calibrations/recipes. Throws UserError.
GemmRecipes read_gemm_recipes(const std::filesystem::path& folder);

/// JSON schema of configs/calibrations/recipes/<device>.json.
Json recipe_schema();

}  // namespace overlap
