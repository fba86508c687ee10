#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/calibrate/fits/fit_device.hpp"
#include "sim/core/units.hpp"

namespace overlap {

inline constexpr double mebibyte = 1 << 20;  ///< bytes

/// "64 KiB"
std::string size_name(Bytes size);

/// The `dma` group, fitted to copies between GPUs in two_gpus.jsonl and, of three GPUs and more, four_gpus.jsonl and
/// at_once.jsonl.
DeviceProblem dma_copies(const std::filesystem::path& folder, const std::string& shown,
                         const HeldOut& held_out = {});

/// Copies between GPUs by kernels: part of the `copy_kernel` group, fitted to two_gpus.jsonl and, of three GPUs and
/// more, four_gpus.jsonl.
DeviceProblem kernel_copies(const std::filesystem::path& folder, const std::string& shown,
                            const HeldOut& held_out = {});

/// Kernels that stream a GPU's own memory on a given number of compute units: copies, packs, scatters, reads,
/// writes, triads and reductions of local.jsonl. Fits the rest of the `copy_kernel` group.
DeviceProblem local_kernels(const std::filesystem::path& folder, const std::string& shown,
                            const HeldOut& held_out = {});

/// Spread of GEMM times between GPUs of one kind: the same shapes on every GPU of several nodes
/// (`folder`/parts_*.jsonl). One row for each node, because a GPU is slower by the same factor in every GEMM:
/// (slowest − fastest) / mean, median over shapes.
DeviceProblem gpu_speeds(const std::filesystem::path& folder, const std::string& shown);

/// The `interference` group: how much GEMMs and copies beside each other slow each other
/// (`interference` cases), and when a copy starts that becomes ready in the middle of a GEMM
/// (`late_copy`). Each case is simulated as chains of GEMMs and copies, and times are taken as the
/// microbenchmark takes them.
DeviceProblem interference_factors(const std::filesystem::path& folder, const std::string& shown);

/// The energy measurements that belong to `folder`: `folder`/energy.jsonl, or those of the same kind of GPU
/// in traces/*/energy if `folder` is traces/…/microbench. Sorted; empty if there are none.
std::vector<std::filesystem::path> energy_files(const std::filesystem::path& folder);

/// Fits idle and active power and the joules of FLOPs and bytes to the mean power of GPUs that repeat one
/// operation for seconds, at its measured rate. GEMMs are fitted in bursts, at the peak clock; at the power
/// limit the prediction must equal the limit. `shown`: the folder's name in the file.
DeviceProblem energy_of_work(const std::vector<std::filesystem::path>& files, const std::string& shown);

/// Public tables of a device in `data`/overlap: a GEMM beside a collective of the vendor's library.
bool has_library_tables(const std::filesystem::path& data, const std::string& device);

/// Fits what a GEMM and a library's collective lose beside each other, apart from compute units, to the tables'
/// factors (time beside over time alone). Only GEMMs by the vendor's library are used, and only of 2048 rows and more:
/// shorter ones are mostly launch. The collective starts first, as it was measured.
///
/// Not fitted: collectives that are shorter than the GEMM. Ranks were not synchronised there, so that they
/// drift apart by up to the difference of both times, and the collective's time includes the wait.
/// Wall times are judged as absolute times.
DeviceProblem library_beside_gemms(const std::filesystem::path& data, const std::string& device);

}  // namespace overlap
