#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/calibrate/measurements/measured_machine.hpp"
#include "sim/compare/measured_case.hpp"
#include "sim/core/temporary_folder.hpp"

namespace overlap {

/// An archive of scripts/measure, unpacked while this lives, or the folder that one is made of.
class MeasuredArchive {
public:
    /// Throws UserError.
    explicit MeasuredArchive(const std::filesystem::path& path);
    /// Its manifest.json and measurements.
    const std::filesystem::path& folder() const { return folder_; }

private:
    TemporaryFolder unpacked_;
    std::filesystem::path folder_;
};

bool is_measured_archive(const std::filesystem::path& path);

/// The shipped device that the machine's facts match. Throws UserError, of the archive `shown`, if none does: then
/// `flag` must name one.
std::string shipped_device(const MeasuredMachine& machine, const std::string& shown, const std::string& flag);

/// The schedules that an archive has measured, on `device`_<gpus>; empty: on its shipped_device(). Throws UserError.
std::vector<MeasuredCase> schedules_of_archive(const std::filesystem::path& path, std::string device);

}  // namespace overlap
