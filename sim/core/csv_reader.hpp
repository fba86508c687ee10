#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace overlap {

using CsvRow = std::vector<std::string>;

/// Calls `visit` for every row of a CSV file (RFC 4180), the header first, with the number of the row's first
/// line. Memory does not grow with the file. Cells are UTF-8; U+FFFD replaces invalid bytes. Returns whether
/// the last line ends with a line break, which a truncated file lacks. Throws UserError if the file can't be
/// read or is no CSV, and passes on exceptions of `visit`.
bool read_csv(const std::filesystem::path& path,
              const std::function<void(const CsvRow& row, std::size_t line)>& visit);

/// Whether a spreadsheet would compute a cell with this text: it begins with =, +, - or @. Such texts, but
/// not numbers, are written with an apostrophe before them.
bool is_formula(std::string_view text);
/// The text of a cell, without that apostrophe.
std::string text_of_csv_cell(const std::string& cell);

}  // namespace overlap
