#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/calibrate/measurements/measured_gemms.hpp"
#include "sim/calibrate/measurements/measured_links.hpp"

namespace overlap {

/// What the manifest of an archive of `scripts/measure` says.
struct MeasuredMachine {
    std::string device;    ///< as the driver calls it
    std::string platform;  ///< "NVIDIA" or "AMD"
    std::string date;
    int gpus = 1;
    FastLinks fast_links;
    std::map<std::string, double, std::less<>> values;  ///< facts by key of the device file, in its unit
    std::set<GemmFamily> unseen_gemms;                  ///< families of GEMMs that no fit sees
    std::vector<Json> unseen_copies;    ///< rows that agree in every key of one of these are in no fit
    std::vector<std::string> missing;   ///< "two_gpus: needs 2 GPUs, the machine has 1"
    std::vector<std::string> warnings;  ///< noticed while measuring

    bool holds_out(const Json& row) const;
};

/// A value of a device file that follows from single cases.
struct ValueOfCases {
    double value;
    std::string from;  ///< "local.jsonl, latency stream_hop less kernels"
};
/// Launch latencies and hbm_GBps by key ("launch.kernel_us"), in the key's unit, from local.jsonl and two_gpus.jsonl
/// in `folder`; what was not measured is left out.
std::map<std::string, ValueOfCases> values_of_cases(const std::filesystem::path& folder);

/// Reads `folder`/manifest.json and checks that all files of the folder are of its machine. Throws UserError.
MeasuredMachine read_measured_machine(const std::filesystem::path& folder);

}  // namespace overlap
