#pragma once

#include <filesystem>
#include <string>

namespace overlap {

/// Fits the models to an archive of scripts/measure, or to the folder that it was made of, and writes
/// devices/NAME.json, calibrations/NAME.json, topologies/NAME_<gpus>.json and the page validation/NAME.html into
/// `out`. What was not measured stays that of the nearest shipped device: as it is if `name` is empty or that device,
/// else as an estimate. Returns what it did, with the errors on what no fit saw. Throws UserError.
std::string calibrate_archive(const std::filesystem::path& archive, std::string name,
                              const std::filesystem::path& out);

}  // namespace overlap
