#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// One line of results of the microbenchmark (models/calibration/hip/README.md): a case, measured in one
/// pass.
struct Measurement {
    std::string kind;
    std::int64_t pass = 1;
    std::size_t line = 0;  ///< of the file, from 1
    Json fields;           ///< the whole line
};

/// JSON Lines of the microbenchmark: the machine, then a line a case and pass. Cases that the machine could
/// not do ("skipped", "error") are left out and counted.
struct MeasurementFile {
    std::filesystem::path path;
    Json machine;
    std::vector<Measurement> measurements;
    std::size_t not_measured = 0;

    /// Strict view of a line, for what its kind alone has; errors name file and line.
    ConfigObject view(const Measurement& measurement) const;
    /// ISO date of the measurement, from the machine line.
    std::string date() const;
};

/// Reads a file whole. Checks what all kinds share: first line of schema 1 and kind "machine", known kinds,
/// no key twice in a line, no case twice in a pass, unit "us", times positive or null, every other number
/// finite and not negative. Throws UserError "file:line: /key: value, what is allowed".
MeasurementFile read_measurements(const std::filesystem::path& path);

}  // namespace overlap
