#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// A small CSV file with a header line, kept as text. Quoted cells are not
/// supported: tables of shapes have none.
class CsvTable {
public:
    CsvTable(std::string file, std::vector<std::vector<std::string>> lines);

    std::size_t rows() const { return lines_.size() - 1; }
    const std::vector<std::string>& columns() const { return lines_.front(); }
    bool has(const std::string& column) const;
    /// Throws UserError if the header lacks the column.
    void require(const std::string& column) const;
    const std::string& cell(std::size_t row, const std::string& column) const;
    /// A whole number from 1 to 1e9; throws UserError "file:line: …".
    std::int64_t integer(std::size_t row, const std::string& column) const;
    /// A number above 0, to 1e15; throws likewise.
    double number(std::size_t row, const std::string& column) const;
    /// "file:line", for errors.
    std::string where(std::size_t row) const;
    Json row_as_json(std::size_t row) const;
    /// The file again with more columns at the end of its lines, as they are given: a header each, and a row of
    /// cells for each row.
    std::string with_columns(std::span<const std::string> names,
                             std::span<const std::vector<std::string>> rows) const;

private:
    std::size_t column(const std::string& name) const;

    std::string file_;
    std::vector<std::vector<std::string>> lines_;
};

/// Throws UserError for a missing or empty file, a quoted cell, or a row with another number
/// of cells than the header.
CsvTable read_csv_table(const std::filesystem::path& path);

}  // namespace overlap
