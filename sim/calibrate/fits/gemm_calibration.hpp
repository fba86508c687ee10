#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/calibrate/fits/gemm_validation.hpp"
#include "sim/calibrate/recipes/gemm_recipes.hpp"
#include "sim/core/config_reader.hpp"

namespace overlap {

/// Rows that a recipe is fitted to and judged on, without anchors.
std::vector<GemmMeasurement> gemm_rows(const GemmRecipe& recipe, const std::filesystem::path& data);

/// Devices whose GEMMs are fitted to public tables or derived from such fits, sorted.
std::vector<std::string> table_devices(const GemmRecipes& recipes);

/// One fitted device and dtype, for a report.
struct GemmCalibrationResult {
    std::string device;
    DType dtype = DType::bf16;
    GemmValidation validation;
};

/// Fits every recipe with a table (or those of `devices`, if given) to the tables in `data`/gemm and derives the dtypes
/// without a table. Writes the groups `gemm`, and `gemm_libraries` where a table distinguishes kernel
/// libraries, of `folder`/<device>.json; other groups of an existing file stay. `date` (ISO) goes into the
/// provenance. Takes minutes for all devices. Throws UserError for unreadable tables and unknown devices.
std::vector<GemmCalibrationResult> write_gemm_calibrations(const GemmRecipes& recipes,
                                                           const std::filesystem::path& data,
                                                           const std::filesystem::path& folder,
                                                           const std::string& date,
                                                           const std::vector<std::string>& devices = {});

/// Errors of `parameters` on a public table of a device that is fitted to our own measurements.
struct GemmTableCheck {
    DType dtype = DType::bf16;
    std::string table, note;
    GemmErrors errors;
};
std::vector<GemmTableCheck> check_public_tables(const GemmRecipes& recipes, const std::string& device,
                                                const std::map<DType, GemmParameters>& parameters,
                                                const std::filesystem::path& data);

/// Writes groups to `folder`/<device>.json; other groups of an existing file stay.
void write_groups(const std::filesystem::path& folder, const std::string& device, const Json& groups);

}  // namespace overlap
