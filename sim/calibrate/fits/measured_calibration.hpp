#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/calibrate/fits/fit_gemm.hpp"
#include "sim/calibrate/fits/gemm_classes.hpp"
#include "sim/calibrate/measurements/measured_gemms.hpp"
#include "sim/calibrate/recipes/gemm_recipes.hpp"

namespace overlap {

inline constexpr int measured_folds = 5;

/// The class of GEMMs of 50 µs and more of families that no fit sees.
inline const std::string gemms_in_no_fit = "GEMM, families in no fit";

/// The rows of one dtype that its fit uses.
struct MeasuredRows {
    std::vector<GemmMeasurement> rows;  ///< GEMMs alone, then long runs
    std::string file;                   ///< name of the file in its folder
    std::string date;
    std::string gemm_library;
};

/// One dtype, fitted to the microbenchmark.
struct MeasuredCalibration {
    MeasuredGemmRecipe recipe;
    MeasuredRows data;
    std::size_t families = 0;
    GemmFit fit;                     ///< to all rows: the shipped values
    std::vector<GemmFit> fold_fits;  ///< without the families of each fold
    std::vector<JudgedGemm> judged;  ///< each row by `fit`, and by the fit that has not seen its family
    std::vector<JudgedGemm> unseen;  ///< rows of families that no fit sees
};

/// Reads `folder`/gemm.jsonl, and long runs of `folder`/local.jsonl if the file exists. Throws UserError if
/// the files are not of `machine` or have no such rows.
MeasuredRows read_measured_rows(const std::filesystem::path& folder, const MeasuredGemmRecipe& recipe);

/// Fits every recipe, in order: once to all rows, and once without each fold. A dtype
/// whose prior is another dtype starts, in each fold, from that fold's fit, so no fold sees its families in
/// any dtype. Deterministic. Takes 10 s on two cores for some 700 rows. No fit sees the
/// families `unseen`. `fitted` is called after each recipe.
std::vector<MeasuredCalibration> calibrate_measured(std::span<const MeasuredGemmRecipe> recipes,
                                                    const std::filesystem::path& folder,
                                                    const std::set<GemmFamily>& unseen = {},
                                                    const std::function<void()>& fitted = nullptr);

/// The device's `gemm` group. `shown_folder`: the folder's name in the file ("traces/…").
Json measured_gemm_json(const std::vector<MeasuredCalibration>& calibrations,
                        const std::string& shown_folder);

/// Measurement folders of devices that have a recipe: `traces`/*/microbench, by device.
std::map<std::string, std::filesystem::path> find_measurements(std::span<const MeasuredGemmRecipe> recipes,
                                                               const std::filesystem::path& traces);
/// The device that a folder's gemm.jsonl was measured on. Throws UserError if no recipe has that device.
std::string measured_device(std::span<const MeasuredGemmRecipe> recipes, const std::filesystem::path& folder);

}  // namespace overlap
