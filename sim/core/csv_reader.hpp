#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace overlap {

using CsvRow = std::vector<std::string>;

/// Calls `visit` for every row of a CSV file (RFC 4180) in turn, the header first, with the number of the
/// line on which the row begins; memory does not grow with the file. Returns whether the last line has an
/// end: a file that was cut off has none. Throws UserError where the file cannot be read or is no CSV, and
/// lets through what `visit` throws.
bool read_csv(const std::filesystem::path& path,
              const std::function<void(const CsvRow& row, std::size_t line)>& visit);

}  // namespace overlap
