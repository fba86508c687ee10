#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace overlap {

using CsvRow = std::vector<std::string>;

/// Calls `visit` for every row of a CSV file (RFC 4180) in turn, the header first, with the number of the
/// line on which the row begins; memory does not grow with the file. Cells are UTF-8: U+FFFD stands for other
/// bytes. Returns whether the last line has an
/// end: a file that was cut off has none. Throws UserError where the file cannot be read or is no CSV, and
/// lets through what `visit` throws.
bool read_csv(const std::filesystem::path& path,
              const std::function<void(const CsvRow& row, std::size_t line)>& visit);

/// Whether a spreadsheet would compute a cell with this text: it begins with =, +, - or @. Such texts are
/// written with an apostrophe before them; numbers are not.
bool is_formula(std::string_view text);
/// The text of a cell, without that apostrophe.
std::string text_of_csv_cell(const std::string& cell);

}  // namespace overlap
