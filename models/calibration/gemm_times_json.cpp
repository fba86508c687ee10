#include "models/calibration/gemm_times_json.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "models/calibration/measurement_file.hpp"
#include "models/calibration/parameter_json.hpp"
#include "models/gemm_times.hpp"

namespace overlap {
namespace {

constexpr std::int64_t longest_side = 1 << 24;
const std::array<std::string, 2> betas{"0", "1"};
const std::array<std::string, 2> weights{"warm", "cold"};

struct Sum {
    double us = 0;
    int count = 0;
};

void add_to(std::map<GemmShape, Sum, ByShape>& sums, const MeasurementFile& file) {
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "gemm") continue;
        ConfigObject line = file.view(measurement);
        if (line.integer("units", 0, longest_side) > 0 || line.choice("weights", weights) != 0) continue;
        const GemmShape shape{line.integer("m", 1, longest_side), line.integer("n", 1, longest_side),
                              line.integer("k", 1, longest_side),
                              static_cast<DType>(line.choice("dtype", dtype_names)),
                              line.choice("beta", betas) == 1};
        Sum& sum = sums[shape];
        sum.us += line.number("chain_us", positive);
        ++sum.count;
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
    std::map<GemmShape, Sum, ByShape> sums;
    std::string files, date;
    for (const std::filesystem::path& path : paths) {
        const MeasurementFile file = read_measurements(path);
        add_to(sums, file);
        files += (files.empty() ? shown + "/" : ", ") + path.filename().string();
        date = std::max(date, file.date());
    }
    Json group{{"provenance",
                {{"file", files},
                 {"date", date},
                 {"method", "chain_us of GEMMs on all compute units, mean over GPUs and passes"},
                 {"shapes", sums.size()}}}};
    for (const auto& [shape, sum] : sums)
        group[gemm_times_key(shape.dtype, shape.accumulate)][shape_name(shape)] = rounded(sum.us / sum.count);
    return group;
}

}  // namespace overlap
