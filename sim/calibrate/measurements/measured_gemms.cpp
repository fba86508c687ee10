#include "sim/calibrate/measurements/measured_gemms.hpp"

#include <array>
#include <map>
#include <tuple>

namespace overlap {
namespace {

const std::array<std::string, 2> betas{"0", "1"};
const std::array<std::string, 2> weights{"warm", "cold"};
constexpr std::array<double, 6> sustained_ms{20, 50, 100, 200, 500, 900};

GemmShape read_shape(ConfigObject& line) {
    const auto side = [&](const char* key) { return line.integer(key, 1, most_in_a_case); };
    return {side("m"), side("n"), side("k"), static_cast<DType>(line.choice("dtype", dtype_names))};
}

/// The order of the rows.
auto place_of(const GemmShape& shape) {
    return std::tuple(shape.n, shape.k, shape.m, shape.accumulate);
}

}  // namespace

GemmLine read_gemm_line(ConfigObject& line) {
    GemmLine gemm{read_shape(line), line.number("chain_us", positive), line.integer("gpu", 0, 1024)};
    gemm.shape.accumulate = line.choice("beta", betas) == 1;
    gemm.on_all_units = line.integer("units", 0, most_in_a_case) == 0;
    gemm.is_cold = line.choice("weights", weights) == 1;
    return gemm;
}

std::vector<GemmMeasurement> measured_gemms(const MeasurementFile& file, DType dtype) {
    std::map<decltype(place_of({})), MeanTime> times, cold;
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "gemm") continue;
        ConfigObject line = file.view(measurement);
        const GemmLine gemm = read_gemm_line(line);
        if (gemm.shape.dtype == dtype && gemm.on_all_units && gemm.gpu == 0)
            (gemm.is_cold ? cold : times)[place_of(gemm.shape)].add(gemm.us);
    }
    times.merge(cold);
    std::vector<GemmMeasurement> rows;
    for (const auto& [shape, time] : times) {
        const auto& [n, k, m, accumulate] = shape;
        rows.push_back({{m, n, k, dtype, accumulate}, microseconds(time.mean()), 1.0, {}});
    }
    return rows;
}

std::vector<GemmMeasurement> sustained_gemms(const MeasurementFile& file, DType dtype) {
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, double>, MeanTime> points;
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "sustained") continue;
        ConfigObject line = file.view(measurement);
        const GemmShape shape = read_shape(line);
        if (shape.dtype != dtype || line.number("idle_ms", non_negative) > 0 ||
            line.integer("gpus", 1, 1024) > 1)
            continue;
        const auto group = static_cast<double>(line.integer("gemms_a_group", 1, most_in_a_case));
        double elapsed = 0, count = 0;
        auto until = sustained_ms.begin();
        for (const double us : line.numbers("samples", positive)) {
            elapsed += us * group;
            count += group;
            if (until == sustained_ms.end()) break;
            if (elapsed < 1e3 * *until) continue;
            points[{shape.n, shape.k, shape.m, *until++}].add(elapsed / count);
        }
    }
    std::vector<GemmMeasurement> rows;
    for (const auto& [point, time] : points) {
        const auto& [n, k, m, ms] = point;
        rows.push_back({{m, n, k, dtype, false}, microseconds(time.mean()), 1.0, microseconds(1e3 * ms)});
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
