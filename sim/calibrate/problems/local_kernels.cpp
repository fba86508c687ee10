#include "sim/calibrate/problems/problems.hpp"

#include <cmath>
#include <map>
#include <optional>

#include "models/streaming.hpp"
#include "sim/calibrate/measurements/measurement_file.hpp"
#include "sim/topology/device_launch.hpp"

namespace overlap {
namespace {

const std::string large = "local kernel >= 1 MiB", small = "local kernel < 1 MiB", copies = "  copy",
                  strided = "  pack, scatter", streams = "  write, triad", sums = "  reduction",
                  unmodelled = "sums, reads, and packs < 1 MiB, in no fit",
                  in_no_fit = "local kernels in no fit";
const std::array<std::string, 3> copy_operations{"copy", "pack", "scatter"};
const std::array<std::string, 4> memory_operations{"read", "write", "triad", "reduce"};

/// A case without its time.
struct LocalKernel {
    std::string operation;
    Work work;
    int blocks = 0;
    Bytes size;  ///< size of one array
    std::string group;
    /// The model ignores that units wait for the loads of sums and pure reads, and that packs begin later than copies
    /// (models/streaming.hpp).
    bool is_modelled() const {
        return group != sums && operation != "read" && (group != strided || size.si() >= mebibyte);
    }
};

std::vector<DeviceParameter> local_kernel_parameters() {
    const Range rate_GBps{1e-3, 1e7};
    const std::string group = "copy_kernel";
    return {{group, "stream_start_us", 0.45, 2, {1e-3, 1e6}, "estimate: a copy of 4 KiB takes 4.95 us"},
            {group, "cu_GBps", 86, 1.1, rate_GBps,
             "estimate: 1 GiB by 1 block is read in 8051 us and written in 16952"},
            {group, "cache_GBps", 6400, 1.3, rate_GBps, "estimate: a copy of 16 MiB takes 10.0 us"}};
}

LocalKernel local_copy(ConfigObject& line) {
    LocalKernel kernel;
    kernel.operation = copy_operations.at(line.choice("operation", copy_operations));
    kernel.blocks = static_cast<int>(line.integer("blocks", 0, most_in_a_case));
    kernel.size = Bytes(line.number("size", positive));
    const bool whole = kernel.operation == "copy";
    kernel.work = LocalCopyWork{kernel.size, whole ? kernel.size : Bytes(line.number("row", positive))};
    kernel.group = whole ? copies : strided;
    return kernel;
}

LocalKernel memory(ConfigObject& line) {
    LocalKernel kernel;
    kernel.operation = memory_operations.at(line.choice("operation", memory_operations));
    kernel.blocks = static_cast<int>(line.integer("blocks", 1, most_in_a_case));
    kernel.size = Bytes(line.number("size", positive));
    kernel.group = streams;
    if (kernel.operation == "read") kernel.work = MemoryBoundWork{kernel.size, Bytes()};
    if (kernel.operation == "write") kernel.work = MemoryBoundWork{Bytes(), kernel.size};
    if (kernel.operation == "triad") kernel.work = MemoryBoundWork{2.0 * kernel.size, kernel.size};
    if (kernel.operation == "reduce") {
        const auto parts = static_cast<int>(line.integer("parts", 2, most_in_a_case));
        kernel.work = ReduceWork{kernel.size, parts};
        kernel.operation += " of " + std::to_string(parts);
        kernel.group = sums;
    }
    return kernel;
}

/// What two events without a kernel between them take, to a tenth of a microsecond, which is the noise of such
/// medians. Nothing if the file has no such case.
std::optional<Seconds> time_of_events(const MeasurementFile& file) {
    double us = 0;
    int passes = 0;
    for (const Measurement& measurement : file.measurements) {
        if (measurement.kind != "latency") continue;
        ConfigObject line = file.view(measurement);
        if (line.text("what") != "events") continue;
        us += line.number("median", positive);
        ++passes;
    }
    if (passes == 0) return {};
    return microseconds(std::round(10 * us / passes) / 10);
}

/// A kernel between two events. Where their time was not measured, they cost as much as a dependency.
double predicted_us(const LocalKernel& kernel, const DeviceSpec& device, std::optional<Seconds> events) {
    return to_microseconds(device.launch->kernel + start_of(kernel.work, device) +
                           streamed(kernel.work, device, kernel.blocks, OperandsIn::cache).body +
                           events.value_or(device.launch->dependency));
}

}  // namespace

DeviceProblem local_kernels(const std::filesystem::path& folder, const std::string& shown,
                            const HeldOut& held_out) {
    const MeasurementFile file = read_measurements(folder / "local.jsonl");
    DeviceProblem problem{.name = "local kernels",
                          .parameters = local_kernel_parameters(),
                          .classes = {large, small, copies, strided, streams, unmodelled, in_no_fit},
                          .families = "operation, blocks",
                          .file = shown + "/local.jsonl",
                          .date = file.date()};
    const std::optional<Seconds> events = time_of_events(file);
    std::map<std::string, int> passes;
    std::map<std::string, std::size_t> rows;
    for (const Measurement& measurement : file.measurements) {
        ConfigObject line = file.view(measurement);
        LocalKernel kernel;
        if (measurement.kind == "local_copy" && line.choice("agent", agent_names) == 1)
            kernel = local_copy(line);
        else if (measurement.kind == "memory")
            kernel = memory(line);
        else
            continue;
        std::string name =
            kernel.operation + " " + size_name(kernel.size) + " " + std::to_string(kernel.blocks) + " blocks";
        if (kernel.group == strided)
            name += " in rows of " + size_name(std::get<LocalCopyWork>(kernel.work).run);
        const double us = line.number("median", positive);
        const auto [place, is_new] = rows.emplace(name, problem.rows.size());
        const int pass = ++passes[name];
        if (!is_new) {
            double& mean = problem.rows[place->second].measured;
            mean += (us - mean) / pass;
            continue;
        }
        const bool unseen = held_out && held_out(measurement.fields);
        problem.rows.push_back(
            {.name = name,
             .family = kernel.operation + " " + std::to_string(kernel.blocks),
             .classes = unseen ? std::vector{in_no_fit}
                        : !kernel.is_modelled()
                            ? std::vector{unmodelled}
                            : std::vector{kernel.size.si() >= mebibyte ? large : small, kernel.group},
             .measured = us,
             .weight = unseen || !kernel.is_modelled() ? 0.0 : 1.0,
             .predict = [kernel, events](const Machines& machines) {
                 return predicted_us(kernel, machines.begin()->second.topology.device(), events);
             }});
    }
    return problem;
}

}  // namespace overlap
