#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// No side, count or length of a case is larger.
inline constexpr std::int64_t most_in_a_case = 1 << 24;

/// One result line of the microbenchmark (models/calibration/hip/README.md): a case, measured in one pass.
struct Measurement {
    std::string kind;
    std::int64_t pass = 1;
    std::size_t line = 0;  ///< line number in the file, from 1
    Json fields;           ///< the whole line
};

/// JSON Lines of the microbenchmark: the machine, then one line for each case and pass. Cases that failed on
/// the machine ("skipped", "error") are left out and counted.
struct MeasurementFile {
    std::filesystem::path path;
    Json machine;
    std::vector<Measurement> measurements;
    std::size_t not_measured = 0;

    /// Strict reader of the fields that are specific to the line's kind; errors name file and line.
    ConfigObject view(const Measurement& measurement) const;
    /// ISO date of the measurement, from the machine line.
    std::string date() const;
};

/// Reads a whole file and checks what all kinds share: the first line has schema 1 and kind "machine";
/// kinds are known; no key is twice in a line, no case twice in a pass; the unit is "us"; times are
/// positive or null; all other numbers are finite and not negative. Throws UserError "file:line: /key:
/// value, what is allowed".
MeasurementFile read_measurements(const std::filesystem::path& path);

}  // namespace overlap
