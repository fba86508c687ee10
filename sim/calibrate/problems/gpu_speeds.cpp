#include "sim/calibrate/problems/problems.hpp"

#include <algorithm>
#include <map>

#include "models/gpu_spread.hpp"
#include "sim/calibrate/measurements/gemm_times_json.hpp"
#include "sim/calibrate/measurements/measurement_file.hpp"
#include "sim/topology/device_losses.hpp"

namespace overlap {
namespace {

/// In shorter GEMMs the noise of a median is not small compared with the differences between GPUs.
constexpr double shortest_us = 200;

std::string class_of(std::size_t gpus) {
    return "range of " + std::to_string(gpus) + " GPUs";
}

/// Times of one shape, by GPU.
using TimesByGpu = std::map<std::int64_t, double>;

std::map<std::string, TimesByGpu> times_by_shape(const MeasurementFile& file) {
    std::map<std::string, TimesByGpu> result;
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "gemm") continue;
        ConfigObject line = file.view(measurement);
        const auto side = [&](const char* key) { return line.integer(key, 1, 1 << 24); };
        const std::string shape =
            shape_name({side("m"), side("n"), side("k")}) + (line.text("beta") == "1" ? " accumulated" : "");
        result[shape][line.integer("gpu", 0, 1023)] = line.number("chain_us", positive);
    }
    return result;
}

/// (slowest − fastest) / mean of each shape that is long enough; sorted.
std::vector<double> ranges(const MeasurementFile& file, std::size_t gpus) {
    std::vector<double> result;
    for (const auto& [shape, times] : times_by_shape(file)) {
        double sum = 0, least = times.begin()->second, most = least;
        for (const auto& [gpu, us] : times) {
            sum += us;
            least = std::min(least, us);
            most = std::max(most, us);
        }
        const double mean = sum / static_cast<double>(gpus);
        if (times.size() == gpus && mean >= shortest_us) result.push_back((most - least) / mean);
    }
    std::sort(result.begin(), result.end());
    return result;
}

void add_row(const std::filesystem::path& path, DeviceProblem& problem) {
    const MeasurementFile file = read_measurements(path);
    problem.date = std::max(problem.date, file.date());
    ConfigObject machine(file.machine, path.string() + ":1");
    const auto gpus = static_cast<std::size_t>(machine.integer("gpus", 2, 1024));
    const std::vector<double> of_shapes = ranges(file, gpus);
    if (of_shapes.empty()) throw UserError(path.string() + ": has no long GEMM that every GPU ran");
    problem.rows.push_back({.name = path.stem().string(),
                            .family = path.stem().string(),
                            .classes = {class_of(gpus)},
                            .measured = of_shapes[of_shapes.size() / 2],
                            .weight = 1,
                            .predict = [count = static_cast<int>(gpus)](const Machines& machines) {
                                return 2 * expected_largest(count) *
                                       machines.begin()->second.topology.device().variation->gpu_speed;
                            }});
}

}  // namespace

DeviceProblem gpu_speeds(const std::filesystem::path& folder, const std::string& shown) {
    DeviceProblem problem{.name = "GPU speeds",
                          .parameters = {{"variation",
                                          "gpu_speed_spread",
                                          0.01,
                                          2,
                                          {1e-4, 0.2},
                                          "estimate: GPUs of one node differ by 1 to 2 %",
                                          true}},
                          .classes = {class_of(2), class_of(4)},
                          .families = "node",
                          .unit = "1"};
    for (const std::filesystem::path& path : parts_files(folder)) {
        add_row(path, problem);
        problem.file += (problem.file.empty() ? shown + "/" : ", ") + path.filename().string();
    }
    return problem;
}

}  // namespace overlap
