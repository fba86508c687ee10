#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/calibration.hpp"
#include "models/calibration/recipes/kernel_recipes.hpp"

namespace overlap {

/// Errors |predicted / measured − 1| of the kernels of 20 us and more.
struct KernelErrors {
    std::size_t rows = 0, families = 0;
    double mean = 0, p90 = 0, bias = 0;
};

/// Rows of a table by format. Of an MoE table, `left_out` has the shapes whose three distributions of tokens differ in
/// efficiency by more than a factor of 2.5: there the library's tuner chose a kernel of another kind (of fp8 and bf16
/// with 8192-wide experts, 7 to 30 times slower). They are in no fit.
struct KernelRows {
    std::map<std::string, std::vector<KernelRow>> kept, left_out;
};
KernelRows read_kernel_rows(const std::filesystem::path& data, const KernelSource& source,
                            const Calibration& gemms);

/// Price of a row by the device's fits; 0 if there is none for its format.
Seconds kernel_time(const KernelRow& row, const KernelCalibration& fits);

KernelErrors kernel_errors(std::span<const KernelRow> rows, const KernelCalibration& fits);

struct KernelFitResult {
    std::string device, group, format;
    KernelErrors fitted, held_out, left_out;
};

/// Fits every table of `sources` whose device is of `devices` (or all, if empty) to the families that are not of fold 0, and writes the groups of
/// `folder`/<device>.json. The prior takes rates from the device's GEMM calibration. A minute a device.
std::vector<KernelFitResult> write_kernel_calibrations(const std::vector<KernelSource>& sources,
                                                       const std::filesystem::path& data,
                                                       const std::filesystem::path& folder,
                                                       const std::string& date,
                                                       const std::vector<std::string>& devices);

}  // namespace overlap
