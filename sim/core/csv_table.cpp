#include "sim/core/csv_table.hpp"

#include <sstream>

#include "sim/core/archive.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {

CsvTable::CsvTable(std::string file, std::vector<std::vector<std::string>> lines)
    : file_(std::move(file)), lines_(std::move(lines)) {}

std::size_t CsvTable::column(const std::string& name) const {
    return place_of(lines_.front(), name);
}

bool CsvTable::has(const std::string& name) const {
    return column(name) < lines_.front().size();
}

void CsvTable::require(const std::string& name) const {
    if (!has(name))
        throw UserError(file_ + ":1: column '" + name + "' is missing" + suggestion(name, lines_.front()));
}

const std::string& CsvTable::cell(std::size_t row, const std::string& name) const {
    return lines_.at(row + 1).at(column(name));
}

std::string CsvTable::where(std::size_t row) const {
    return file_ + ":" + std::to_string(row + 2);
}

std::int64_t CsvTable::integer(std::size_t row, const std::string& name) const {
    const std::string& text = cell(row, name);
    const auto value = parsed<std::int64_t>(text);
    if (!value || *value < 1 || *value > 1'000'000'000)
        throw UserError(where(row) + ": " + name + " is " + in_quotes(text) +
                        ", expected a whole number from 1 to 1e9");
    return *value;
}

double CsvTable::number(std::size_t row, const std::string& name) const {
    const std::string& text = cell(row, name);
    const auto value = parsed<double>(text);
    if (!value || !(*value > 0) || *value > 1e15)
        throw UserError(where(row) + ": " + name + " is " + in_quotes(text) + ", expected a positive number");
    return *value;
}

Json CsvTable::row_as_json(std::size_t row) const {
    Json json = Json::object();
    for (std::size_t i = 0; i < lines_.front().size(); ++i) json[lines_.front()[i]] = lines_.at(row + 1)[i];
    return json;
}

std::string CsvTable::with_columns(std::span<const std::string> names,
                                   std::span<const std::vector<std::string>> rows) const {
    std::string text;
    for (std::size_t line = 0; line < lines_.size(); ++line) {
        for (const std::string& cell : lines_[line]) text += cell + ",";
        const auto added = line == 0 ? names : std::span<const std::string>(rows[line - 1]);
        for (std::size_t i = 0; i < added.size(); ++i) text += (i == 0 ? "" : ",") + added[i];
        text += '\n';
    }
    return text;
}

CsvTable read_csv_table(const std::filesystem::path& path) {
    std::istringstream in(decompressed(path, "a CSV file"));
    std::vector<std::vector<std::string>> lines;
    for (std::string line; std::getline(in, line);) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty()) continue;
        const std::string where = path.string() + ":" + std::to_string(lines.size() + 1);
        if (line.find('"') != std::string::npos)
            throw UserError(where + ": has a quoted cell, which is not supported");
        std::vector<std::string> cells = split(line, ',');
        if (!lines.empty() && cells.size() != lines.front().size())
            throw UserError(where + ": has " + std::to_string(cells.size()) + " cells, expected " +
                            std::to_string(lines.front().size()));
        lines.push_back(std::move(cells));
    }
    if (lines.size() < 2)
        throw UserError(path.string() + ": has no rows, expected a header line and at least one row");
    return {path.string(), std::move(lines)};
}

}  // namespace overlap
