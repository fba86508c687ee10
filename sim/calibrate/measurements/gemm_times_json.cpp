#include "sim/calibrate/measurements/gemm_times_json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "models/gemm_times.hpp"
#include "sim/calibrate/fits/parameter_json.hpp"
#include "sim/calibrate/measurements/measured_gemms.hpp"

namespace overlap {
namespace {

constexpr std::int64_t most_units = 1024;
constexpr int most_waves = 900'000;  // times 1024 units: the most tiles that a calibration may have

struct Mean : MeanTime {
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

using Means = std::map<GemmShape, Mean, ByShape>;

void add_to(Means& warm, Means& cold, const MeasurementFile& file) {
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "gemm") continue;
        ConfigObject line = file.view(measurement);
        const GemmLine gemm = read_gemm_line(line);
        if (!gemm.on_all_units) continue;
        Mean& mean = (gemm.is_cold ? cold : warm)[gemm.shape];
        mean.add(gemm.us);
        // Another GPU or pass might use another kernel (not observed for any shape): the first report is kept.
        if (const int tiles = tiles_of(line, file); mean.tiles == 0) mean.tiles = tiles;
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
    Means means, cold;
    std::string files, date;
    for (const std::filesystem::path& path : paths) {
        const MeasurementFile file = read_measurements(path);
        add_to(means, cold, file);
        files += (files.empty() ? shown + "/" : ", ") + path.filename().string();
        date = std::max(date, file.date());
    }
    means.merge(cold);
    Json group{{"provenance",
                {{"file", files},
                 {"date", date},
                 {"method", "chain_us of GEMMs on all compute units, mean over GPUs and passes"},
                 {"shapes", means.size()}}}};
    for (const auto& [shape, mean] : means) {
        group[gemm_times_key(shape.dtype, shape.accumulate)][shape_name(shape)] = rounded(mean.mean());
        if (mean.tiles > 0)
            group[gemm_tiles_key(shape.dtype, shape.accumulate)][shape_name(shape)] = mean.tiles;
    }
    return group;
}

}  // namespace overlap
