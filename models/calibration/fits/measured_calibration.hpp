#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/calibration/fits/fit_gemm.hpp"
#include "models/calibration/fits/gemm_classes.hpp"
#include "models/calibration/measurements/measured_gemms.hpp"
#include "models/calibration/recipes/gemm_recipes.hpp"

namespace overlap {

inline constexpr int measured_folds = 5;

/// The rows of one dtype that are fitted to.
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
    GemmFit fit;                     ///< to all rows: what is shipped
    std::vector<GemmFit> fold_fits;  ///< without the families of each fold
    std::vector<JudgedGemm> judged;  ///< each row by `fit`, and by the fit that has not seen its family
};

/// `folder`/gemm.jsonl, and long runs of `folder`/local.jsonl if there is one. Throws UserError where they
/// are not of `machine` or have no such rows.
MeasuredRows read_measured_rows(const std::filesystem::path& folder, const MeasuredGemmRecipe& recipe);

/// Fits every measured recipe of `device`, in order, each once to all rows and once without each fold.
/// A dtype that starts from another starts, in each fold, from that fold's fit: no fold sees its families in
/// any dtype. Deterministic. 10 s on two cores for the H200.
std::vector<MeasuredCalibration> calibrate_measured(const std::string& device,
                                                    const std::filesystem::path& folder);

/// The device's `gemm` group. `shown_folder` is the folder as the file names it ("traces/…").
Json measured_gemm_json(const std::vector<MeasuredCalibration>& calibrations,
                        const std::string& shown_folder);

/// Folders with measurements of devices that have a recipe: `traces`/*/microbench by device.
std::map<std::string, std::filesystem::path> find_measurements(const std::filesystem::path& traces);
/// The device that a folder's gemm.jsonl was measured on. Throws UserError where no recipe has it.
std::string measured_device(const std::filesystem::path& folder);

}  // namespace overlap
