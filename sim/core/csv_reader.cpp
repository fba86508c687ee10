#include "sim/core/csv_reader.hpp"

#include <csv.h>
#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <utility>

#include "sim/core/archive.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/input_file.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

/// The rows of a part of a file. They are visited between the parser's calls, so that no exception
/// passes through a C library.
struct Rows {
    std::vector<std::pair<CsvRow, std::size_t>> whole;  ///< with their lines
    CsvRow row;
    std::size_t line = 1, breaks = 0;  ///< of the row that is being read; line breaks in its quoted cells
};

void add_cell(void* data, std::size_t size, void* rows) {
    auto& all = *static_cast<Rows*>(rows);
    all.row.push_back(valid_utf8({static_cast<const char*>(data), size}));
    all.breaks += static_cast<std::size_t>(std::ranges::count(all.row.back(), '\n'));
}

void end_row(int, void* rows) {
    auto& all = *static_cast<Rows*>(rows);
    all.whole.emplace_back(std::exchange(all.row, {}), all.line);
    all.line += 1 + std::exchange(all.breaks, 0);
}

}  // namespace

bool is_formula(std::string_view text) {
    return !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
}

std::string text_of_csv_cell(const std::string& cell) {
    return cell.starts_with('\'') && is_formula(std::string_view(cell).substr(1)) ? cell.substr(1) : cell;
}

bool read_csv(const std::filesystem::path& path,
              const std::function<void(const CsvRow& row, std::size_t line)>& visit) {
    std::ifstream in = open_input(uncompressed_file(path, "a CSV file"), "a CSV file");
    csv_parser parser{};
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0) throw std::bad_alloc();
    const std::unique_ptr<csv_parser, void (*)(csv_parser*)> freed(&parser, &csv_free);
    Rows rows;
    const auto require = [&](bool fine) {
        if (!fine)
            throw UserError(path.string() + ":" + std::to_string(rows.line) +
                            ": is no CSV (a quote in a cell that is not quoted, or one that is not closed)");
    };
    const auto visit_rows = [&] {
        for (const auto& [row, line] : rows.whole) visit(row, line);
        rows.whole.clear();
    };
    std::array<char, 65536> part{};
    char last = '\n';
    while (in.read(part.data(), part.size()), in.gcount() > 0) {
        const auto size = static_cast<std::size_t>(in.gcount());
        const bool fine = csv_parse(&parser, part.data(), size, add_cell, end_row, &rows) == size;
        visit_rows();
        require(fine);
        last = part[size - 1];
    }
    require(csv_fini(&parser, add_cell, end_row, &rows) == 0);
    visit_rows();
    return last == '\n';
}

}  // namespace overlap
