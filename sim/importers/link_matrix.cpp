#include <algorithm>
#include <sstream>

#include "sim/core/errors.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/importers/machine_importer.hpp"

namespace overlap {
namespace {

/// The words of a line, without the codes by which a terminal underlines some.
std::vector<std::string> words_of(std::string line) {
    for (std::size_t at = 0; (at = line.find('\x1b', at)) != std::string::npos;)
        line.erase(at, std::min(line.find('m', at), line.size() - 1) - at + 1);
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}

/// The number of "GPU3"; none for other words.
std::optional<int> gpu_called(const std::string& word) {
    return word.starts_with("GPU") ? parsed<int>(std::string_view(word).substr(3)) : std::nullopt;
}

/// Cells by row and column.
using Matrix = std::vector<std::vector<std::string>>;

/// The matrix between GPUs that begins with the next header of a text; rows of other devices are left out.
Matrix next_matrix(std::istream& in, const std::string& origin, int& line_number) {
    std::size_t gpus = 0;
    Matrix matrix;
    for (std::string line; std::getline(in, line);) {
        ++line_number;
        const std::vector<std::string> words = words_of(line);
        if (words.empty() || !gpu_called(words[0])) {
            if (!matrix.empty() && matrix.size() == gpus) break;
            continue;
        }
        if (gpus == 0) {  // the header
            while (gpus < words.size() && gpu_called(words[gpus]) == static_cast<int>(gpus)) ++gpus;
            continue;
        }
        if (words.size() < gpus + 1 || gpu_called(words[0]) != static_cast<int>(matrix.size()))
            throw UserError(one_line(origin + ":" + std::to_string(line_number) + ": is no row of GPU" +
                                     std::to_string(matrix.size()) + " with " + std::to_string(gpus) +
                                     " cells"));
        matrix.emplace_back(words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(gpus));
        if (matrix.size() == gpus) break;
    }
    if (matrix.empty() || matrix.size() != gpus)
        throw UserError(origin + ": has " + std::to_string(matrix.size()) + " rows of GPUs and " +
                        std::to_string(gpus) + " columns, expected a matrix");
    return matrix;
}

template <class Visit>
void for_each_pair(const Matrix& matrix, Visit visit) {
    for (std::size_t i = 0; i < matrix.size(); ++i)
        for (std::size_t j = i + 1; j < matrix.size(); ++j)
            visit(std::pair(static_cast<int>(i), static_cast<int>(j)), matrix[i][j]);
}

}  // namespace

// NV# is a bonded set of # NVLinks (the legend that nvidia-smi prints); all other words are ways over PCIe.
MachineDescription read_nvidia_matrix(const std::string& text, const std::string& origin) {
    std::istringstream in(text);
    int line = 0;
    const Matrix matrix = next_matrix(in, origin, line);
    MachineDescription machine{
        .from = "nvidia-smi topo -m", .vendor = "0x10de", .gpus = static_cast<int>(matrix.size())};
    for_each_pair(matrix, [&](std::pair<int, int> pair, const std::string& cell) {
        static const std::vector<std::string> by_pcie{"SYS", "NODE", "PHB", "PXB", "PIX"};
        const auto count =
            cell.starts_with("NV") ? parsed<int>(std::string_view(cell).substr(2)) : std::nullopt;
        if (count && *count > 0)
            machine.links[pair] = *count;
        else if (!contains(by_pcie, cell))
            throw UserError(one_line(origin + ": between GPU" + std::to_string(pair.first) + " and GPU" +
                                     std::to_string(pair.second) + " stands '" + cell +
                                     "', expected NV# or " + joined(by_pcie, ", ")));
    });
    return machine;
}

// How many links join two GPUs is not printed. Two GPUs that are further apart than one hop have none.
MachineDescription read_rocm_matrices(const std::string& text, const std::string& origin) {
    const auto matrix = [&](const std::string& title) {
        const std::size_t begin = text.find(title);
        if (begin == std::string::npos) return Matrix{};
        std::istringstream in(text.substr(begin));
        int line = 0;
        return next_matrix(in, origin, line);
    };
    const Matrix types = matrix("Link Type between two GPUs"), hops = matrix("Hops between two GPUs");
    if (!hops.empty() && hops.size() != types.size())
        throw UserError(origin + ": has " + std::to_string(hops.size()) + " GPUs in its hops and " +
                        std::to_string(types.size()) + " in its link types");
    MachineDescription machine{.from = "rocm-smi --showtopo",
                               .vendor = "0x1002",
                               .gpus = static_cast<int>(types.size()),
                               .counts_links = false};
    for_each_pair(types, [&](std::pair<int, int> pair, const std::string& cell) {
        const auto [i, j] = pair;
        const bool next =
            hops.empty() || hops[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] == "1";
        if (cell == "XGMI" && next) machine.links[pair] = 1;
        if (cell != "XGMI" && cell != "PCIE")
            throw UserError(one_line(origin + ": between GPU" + std::to_string(i) + " and GPU" +
                                     std::to_string(j) + " stands '" + cell + "', expected XGMI or PCIE"));
    });
    return machine;
}

}  // namespace overlap
