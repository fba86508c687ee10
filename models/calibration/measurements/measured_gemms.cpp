#include "models/calibration/measurements/measured_gemms.hpp"

#include <array>
#include <map>
#include <tuple>

namespace overlap {
namespace {

constexpr std::int64_t longest_side = 1 << 24;
const std::array<std::string, 2> betas{"0", "1"};
const std::array<std::string, 2> weights{"warm", "cold"};
constexpr std::array<double, 6> sustained_ms{20, 50, 100, 200, 500, 900};

struct Sum {
    double us = 0;
    int count = 0;
};

}  // namespace

std::vector<GemmMeasurement> measured_gemms(const MeasurementFile& file, DType dtype) {
    using Shapes = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, bool>, Sum>;
    Shapes warm, cold;
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "gemm") continue;
        ConfigObject line = file.view(measurement);
        const std::int64_t m = line.integer("m", 1, longest_side), n = line.integer("n", 1, longest_side),
                           k = line.integer("k", 1, longest_side);
        const bool accumulate = line.choice("beta", betas) == 1;
        const bool plain = line.integer("units", 0, longest_side) == 0 && line.integer("gpu", 0, 1024) == 0;
        Shapes& shapes = line.choice("weights", weights) == 0 ? warm : cold;
        const double us = line.number("chain_us", positive);
        if (line.choice("dtype", dtype_names) != static_cast<std::size_t>(dtype) || !plain) continue;
        Sum& sum = shapes[{n, k, m, accumulate}];
        sum.us += us;
        ++sum.count;
    }
    warm.merge(cold);
    std::vector<GemmMeasurement> rows;
    for (const auto& [shape, sum] : warm) {
        const auto& [n, k, m, accumulate] = shape;
        rows.push_back({{m, n, k, dtype, accumulate}, microseconds(sum.us / sum.count), 1.0, {}});
    }
    return rows;
}

std::vector<GemmMeasurement> sustained_gemms(const MeasurementFile& file, DType dtype) {
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, double>, Sum> points;
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "sustained") continue;
        ConfigObject line = file.view(measurement);
        if (line.choice("dtype", dtype_names) != static_cast<std::size_t>(dtype) ||
            line.number("idle_ms", non_negative) > 0 || line.integer("gpus", 1, 1024) > 1)
            continue;
        const std::int64_t m = line.integer("m", 1, longest_side), n = line.integer("n", 1, longest_side),
                           k = line.integer("k", 1, longest_side);
        const auto group = static_cast<double>(line.integer("gemms_a_group", 1, longest_side));
        double elapsed = 0, count = 0;
        auto until = sustained_ms.begin();
        for (const double us : line.numbers("samples", positive)) {
            elapsed += us * group;
            count += group;
            if (until == sustained_ms.end()) break;
            if (elapsed < 1e3 * *until) continue;
            Sum& sum = points[{n, k, m, *until++}];
            sum.us += elapsed / count;
            ++sum.count;
        }
    }
    std::vector<GemmMeasurement> rows;
    for (const auto& [point, sum] : points) {
        const auto& [n, k, m, ms] = point;
        rows.push_back(
            {{m, n, k, dtype, false}, microseconds(sum.us / sum.count), 1.0, microseconds(1e3 * ms)});
    }
    return rows;
}

GemmFamily operator_family(const GemmShape& shape) {
    std::int64_t odd = shape.k;
    while (odd % 2 == 0) odd /= 2;
    return {shape.n, odd};
}

std::map<GemmFamily, int> deal_families(std::span<const GemmMeasurement> rows, int folds) {
    std::map<GemmFamily, int> result;
    for (const GemmMeasurement& row : rows) result[operator_family(row.shape)];
    int next = 0;
    for (auto& [family, fold] : result) fold = next++ % folds;
    return result;
}

}  // namespace overlap
