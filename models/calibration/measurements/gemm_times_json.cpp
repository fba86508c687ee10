#include "models/calibration/measurements/gemm_times_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "models/calibration/fits/parameter_json.hpp"
#include "models/calibration/measurements/measurement_file.hpp"
#include "models/gemm_times.hpp"

namespace overlap {
namespace {

constexpr std::int64_t longest_side = 1 << 24;
constexpr std::int64_t most_units = 1024;
constexpr int most_waves = 900'000;  // times 1024 units: the most tiles that a calibration may have
const std::array<std::string, 2> betas{"0", "1"};
const std::array<std::string, 2> weights{"warm", "cold"};

struct Sum {
    double us = 0;
    int count = 0;
    int tiles = 0;  ///< 0: not known
};

/// The number of parts into which the library split K; 1 if the library does not report it.
int parts_of(const std::string& algorithm) {
    const std::string word = "splitk ";
    const auto at = algorithm.find(word);
    int parts = 1;
    if (at != std::string::npos)
        std::from_chars(algorithm.data() + at + word.size(), algorithm.data() + algorithm.size(), parts);
    return std::clamp(parts, 1, 1024);
}

/// Tiles of the kernel that the library chose, from its report (gemm_cublaslt.cpp: "… splitk 3 … waves
/// 0.272727"; one tile per unit for each part of K). 0 if the library does not report it, like rocBLAS.
int tiles_of(ConfigObject& line, const MeasurementFile& file) {
    if (!line.has("algorithm")) return 0;
    const std::string algorithm = line.text("algorithm"), word = "waves ";
    const auto at = algorithm.rfind(word);
    if (at == std::string::npos) return 0;
    double waves = 0;
    const char* const end = algorithm.data() + algorithm.size();
    const auto [rest, error] = std::from_chars(algorithm.data() + at + word.size(), end, waves);
    if (error != std::errc() || rest != end || !(waves > 0 && waves <= most_waves))
        line.fail("algorithm", "is '" + algorithm + "', expected a number > 0 and <= " +
                                   std::to_string(most_waves) + " after 'waves'");
    ConfigObject machine(file.machine, file.path.string() + ":1");
    const auto units = static_cast<double>(machine.integer("compute_units", 1, most_units));
    return std::max(static_cast<int>(std::lround(waves * units)), 1) * parts_of(algorithm);
}

using Sums = std::map<GemmShape, Sum, ByShape>;

void add_to(Sums& warm, Sums& cold, const MeasurementFile& file) {
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "gemm") continue;
        ConfigObject line = file.view(measurement);
        if (line.integer("units", 0, longest_side) > 0) continue;
        Sums& sums = line.choice("weights", weights) == 0 ? warm : cold;
        const GemmShape shape{line.integer("m", 1, longest_side), line.integer("n", 1, longest_side),
                              line.integer("k", 1, longest_side),
                              static_cast<DType>(line.choice("dtype", dtype_names)),
                              line.choice("beta", betas) == 1};
        Sum& sum = sums[shape];
        sum.us += line.number("chain_us", positive);
        ++sum.count;
        // Another GPU or pass might use another kernel (not observed for any
        // shape): the first report is kept.
        if (const int tiles = tiles_of(line, file); sum.tiles == 0) sum.tiles = tiles;
    }
}

}  // namespace

std::vector<std::filesystem::path> parts_files(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> result;
    for (int node = 1;; ++node) {
        const std::filesystem::path path = folder / ("parts_" + std::to_string(node) + ".jsonl");
        if (!std::filesystem::exists(path)) return result;
        result.push_back(path);
    }
}

Json gemm_times_json(const std::filesystem::path& folder, const std::string& shown) {
    std::vector<std::filesystem::path> paths = parts_files(folder);
    paths.insert(paths.begin(), folder / "gemm.jsonl");
    Sums sums, cold;
    std::string files, date;
    for (const std::filesystem::path& path : paths) {
        const MeasurementFile file = read_measurements(path);
        add_to(sums, cold, file);
        files += (files.empty() ? shown + "/" : ", ") + path.filename().string();
        date = std::max(date, file.date());
    }
    sums.merge(cold);
    Json group{{"provenance",
                {{"file", files},
                 {"date", date},
                 {"method", "chain_us of GEMMs on all compute units, mean over GPUs and passes"},
                 {"shapes", sums.size()}}}};
    for (const auto& [shape, sum] : sums) {
        group[gemm_times_key(shape.dtype, shape.accumulate)][shape_name(shape)] = rounded(sum.us / sum.count);
        if (sum.tiles > 0)
            group[gemm_tiles_key(shape.dtype, shape.accumulate)][shape_name(shape)] = sum.tiles;
    }
    return group;
}

}  // namespace overlap
