#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sim/calibrate/fits/kernel_tables.hpp"

namespace overlap {

/// Errors |predicted / measured − 1| of the kernels of 20 us and more.
struct KernelErrors {
    std::size_t rows = 0, families = 0;
    double mean = 0, p90 = 0, bias = 0;
};

/// Errors on rows of one format; backward passes are left out.
KernelErrors kernel_errors(std::span<const KernelRow> rows, const KernelCalibration& fits);

struct KernelFitResult {
    std::string device, group, format;
    KernelErrors fitted, held_out, left_out;
};

/// Fits every table of `sources` whose device is of `devices` (or all, if empty) to the families that are not of fold
/// 0, and writes its formats into the groups of `folder`/<device>.json. Public tables are in `data`, our own in
/// `traces`; those that are not there are left out. The prior takes rates from the device's GEMM calibration. A
/// minute a device. A table with fewer than 1,000 rows is also validated in four folds, so that each family is held
/// out once.
std::vector<KernelFitResult> write_kernel_calibrations(const std::vector<KernelSource>& sources,
                                                       const std::filesystem::path& data,
                                                       const std::filesystem::path& traces,
                                                       const std::filesystem::path& folder,
                                                       const std::string& date,
                                                       const std::vector<std::string>& devices);

}  // namespace overlap
