#pragma once

#include <array>
#include <string>

#include "sim/topology/device.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/device_losses.hpp"

// Groups and keys of a device file that are no fields of a struct, each once. The reader (device_reader.cpp) and the
// schema (device_schema.cpp) go through the same lists: `At` is one of them, at one object of the file.
namespace overlap {

// clang-format off

/// What the groups are that a calibration may have, too; by place in calibrated_groups.
inline constexpr std::array<const char*, calibrated_groups.size()> calibrated_docs{
    "Costs of starting work on a stream.",
    "Copy engines and the phases of one copy. Time of a copy alone: command + schedule + start + link latency + bytes / rate + completion.",
    "Copies to peers by compute units, and kernels that stream local memory.",
    "What computation and copies take from each other beyond the sharing of compute units, HBM and links, as shares of the undisturbed rate.",
    "How GPUs of one kind differ. Default: not at all.",
    "What power goes into. Left out: results have no energy."};

/// Whether a device may lack the group calibrated_groups[group].
inline bool may_be_left_out(std::size_t group) {
    return calibrated_groups[group] == "variation" || calibrated_groups[group] == "energy";
}

template <class At>
void visit_weights(At& at, DeviceInterference& losses) {
    at.each(weighted_resources, "resource that has weights", [&](At& weights, const std::string& resource) {
        auto& by_class = losses.weights[resource];
        by_class.fill(1.0);
        weights.group_if_any(resource, "Default of each: 1.", [&](At& given) {
            for (std::size_t kind = 0; kind < task_class_names.size(); ++kind)
                given.number(task_class_names[kind], "weight", weight_range, "Weight of the class.", [&](double weight) { by_class[kind] = weight; });
        });
    });
}

/// The keys of calibrated_groups[group].
template <class At>
void visit_calibrated(At& at, std::size_t group, DeviceSpec& device) {
    const std::string& name = calibrated_groups[group];
    at.provenance();
    if (name == "launch") at.fields(*device.launch);
    if (name == "variation") at.fields(*device.variation);
    if (name == "dma") {
        at.fields(*device.dma);
        at.fields(device.dma->phases);
        at.group_if_any("commands", "Commands of engines beside a plain copy: batches back to back, broadcasts, swaps, commands behind a poll. Left out: plain copies only.",
            [&](At& commands) { commands.fields(device.dma->commands.emplace()); });
    }
    if (name == "copy_kernel") {
        at.fields(*device.copy_kernel);
        at.fields(device.copy_kernel->beside);
        at.fields(*device.stream);
    }
    if (name == "interference") {
        at.fields(*device.interference);
        at.group_if_any("weights", "Weights of classes of tasks on a resource that is short, by resource and class. Default: 1.",
            [&](At& weights) { visit_weights(weights, *device.interference); });
    }
    if (name != "energy") return;
    at.fields(device.energy.emplace());
    for (std::size_t dtype = 0; dtype < dtype_names.size(); ++dtype) {
        const std::string key = dtype_names[dtype] + "_pJ_per_flop";
        at.number(key, key, unit_of(key).range, "Energy of a GEMM's FLOP. Left out: not known, and results with such GEMMs have no energy.",
            [&](double pJ) { device.energy->gemm[static_cast<DType>(dtype)] = JoulesPerFlop(pJ * unit_of(key).factor); });
    }
}

template <class At>
void visit_line(At& at, double channels, DeviceLibrary::Line& line) {
    at.fields(line);
    at.counted("bus_GBps_by_channels", "The bus rate with fewer channels, by their number; between them the rate is a power of it.", false, 1, std::llround(channels) - 1, "number of channels",
        [&](At& by_channels, const std::string& key, int count) {
            by_channels.number(key, "bus_GBps", unit_of("bus_GBps").range, "Bus rate with this number of channels.", [&](double rate) { line.bus_by_channels[count] = gigabytes_per_second(rate); });
        });
}

template <class At>
void visit_times(At& at, const char* doc, bool required, DeviceLibrary::TimesByRanks& times) {
    at.counted("by_ranks", doc, required, 2, 1'000'000, "number of GPUs", [&](At& by_ranks, const std::string& key, int ranks) {
        by_ranks.group(key, "Measured times; between them a line.", [&](At& table) {
            std::string source;
            table.text("source", "Where the times are from.", source);
            table.times(times[ranks], DeviceLibrary::held_out<DeviceLibrary::Line>());
        });
    });
}

template <class At>
void visit_library(At& at, DeviceLibrary& library) {
    at.text("name", "Library and version.", library.name);
    at.fields(library);
    at.group_if_any("all_reduce_kernels", "Kernels that only do all-reduces, by algorithm.", [&](At& kernels) {
        for (const CollectiveKernel one : all_reduce_kernels)
            kernels.group_if_any(name_of(one), "All-reduces of inference by one kernel, measured.", [&](At& kernel) {
                DeviceLibrary::AllReduce& read = library.all_reduces[one];
                kernel.text("name", "Whose kernel, with its version.", read.name);
                kernel.fields(read);
                visit_times(kernel, "By number of GPUs.", true, read.times);
            });
    });
    for (std::size_t kind = 0; kind < collective_names.size(); ++kind)
        at.group_if_any(collective_names[kind], "Time = latency_us + bus bytes / bus_GBps; bus bytes as nccl-tests count them.", [&](At& one) {
            DeviceLibrary::Fit& fit = library.collectives[static_cast<CollectiveKind>(kind)];
            visit_line<At>(one, library.channels, fit);
            one.fields(fit);
            one.group_if_any("small", "The same of the protocol for small operands; the fastest of the lines is used.", [&](At& line) { visit_line(line, library.channels, fit.small.emplace()); });
            one.group_if_any("smallest", "The same of the protocol for the smallest operands.", [&](At& line) { visit_line(line, library.channels, fit.smallest.emplace()); });
            visit_times(one, "By number of GPUs, with all channels; they replace the lines.", false, fit.times);
        });
}

/// All keys but version, name and description.
template <class At>
void visit_device(At& at, DeviceSpec& device) {
    at.name_if_any("like", "Device whose GEMM calibration, scaled, holds for this one while configs/calibrations has none of this one. "
        "Default: the nearest one by units, clock, peak rates and memory.", device.like);
    at.fields(device);
    at.group("peak_TFLOPS", "Data-sheet dense rates by number format, 1e12 operations/s. Follow compute_units * peak_clock_GHz.", [&](At& peaks) {
        peaks.each(dtype_names, "data type", [&](At& rates, const std::string& name) {
            rates.number(name, "peak_TFLOPS", unit_of("peak_TFLOPS").range, "Data-sheet dense rate.",
                [&](double rate) { device.peak[static_cast<DType>(place_of(dtype_names, name))] = teraflops(rate); });
        });
    });
    for (std::size_t group = 0; group < calibrated_groups.size(); ++group)
        at.calibrated(group, device);
    at.group_if_any("collective_library", "Collectives of the vendor's library, measured.", [&](At& library) { visit_library(library, *device.collective_library); });
}
// clang-format on

}  // namespace overlap
