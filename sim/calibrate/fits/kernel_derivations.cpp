#include "sim/calibrate/fits/kernel_derivations.hpp"

#include <algorithm>

#include "models/kernel_calibration.hpp"
#include "sim/calibrate/fits/gemm_calibration.hpp"
#include "sim/topology/like_device.hpp"

namespace overlap {

namespace {

/// The groups of `calibration` with the fits of `scaled` to kernels alone.
Json with_those_alone(const Json& calibration, const Json& scaled) {
    Json groups = Json::object();
    for (const auto& [name, group] : scaled.items())
        for (const auto& [format, fit] : group.items()) {
            const bool of_library = format.ends_with("_" + fit.value("library", ""));
            if (!of_library && !format.ends_with(kernel_alone) && !format.ends_with(backward_alone)) continue;
            if (!groups.contains(name)) groups[name] = calibration.value(name, Json::object());
            groups[name][format] = fit;
        }
    return groups;
}

}  // namespace

std::vector<std::string> write_derived_kernels(const std::vector<KernelDerivation>& derivations,
                                               const std::filesystem::path& device_files,
                                               const std::filesystem::path& folder, const std::string& date,
                                               const std::vector<std::string>& devices) {
    const auto calibration = [&](const std::string& device) { return folder / (device + ".json"); };
    std::vector<std::string> written;
    for (const KernelDerivation& derivation : derivations) {
        if (!devices.empty() && std::find(devices.begin(), devices.end(), derivation.device) == devices.end())
            continue;
        if (!std::filesystem::exists(calibration(derivation.device)) ||
            !std::filesystem::exists(calibration(derivation.from)))
            continue;
        Json groups = scaled_kernels(read_json_file(calibration(derivation.from)),
                                     read_json_file(device_files / (derivation.from + ".json")),
                                     read_json_file(device_files / (derivation.device + ".json")));
        for (auto& [name, group] : groups.items())
            for (auto& [format, fit] : group.items())
                fit["provenance"].update({{"reason", derivation.reason}, {"date", date}});
        if (derivation.alone)
            groups = with_those_alone(read_json_file(calibration(derivation.device)), groups);
        write_groups(folder, derivation.device, groups);
        written.push_back(derivation.device);
    }
    return written;
}

}  // namespace overlap
