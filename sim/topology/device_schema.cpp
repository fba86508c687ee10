#include "sim/topology/device_schema.hpp"

#include "sim/core/file_version.hpp"
#include "sim/topology/device.hpp"

namespace overlap {
namespace {

/// A number whose key has no field of its own: one of many of its kind.
Json number_schema(const std::string& key, Range range, const std::string& doc,
                   const std::string& definition) {
    Key number;
    number.key = key;
    number.range = range;
    return sourced_schema(number, doc, definition);
}

// clang-format off
Json commands_schema(const std::string& definition) {
    Json group = object_schema(
        "Commands of engines beside a plain copy: batches back to back, broadcasts, swaps, commands behind a poll. "
        "Left out: plain copies only.");
    add_fields<DeviceDmaCommands>(group, definition);
    return group;
}

Json weights_schema(const std::string& definition) {
    const Json weight = number_schema("weight", weight_range, "Weight of the class.", definition);
    return map_schema("Weights of classes of tasks on a resource that is short, by resource and class. Default: 1.",
                      {{"enum", weighted_resources}},
                      {{"type", "object"},
                       {"propertyNames", {{"enum", task_class_names}}},
                       {"additionalProperties", weight}});
}

Json library_schema() {
    Json library = object_schema("Collectives of the vendor's library, measured.");
    library["required"].push_back("name");
    library["properties"]["name"] = text_schema("Library and version.", 1);
    add_fields<DeviceLibrary>(library, "sourced");
    Json line = object_schema("Time = latency_us + bus bytes / bus_GBps; bus bytes as nccl-tests count them.");
    add_fields<DeviceLibrary::Line>(line, "sourced");
    line["properties"]["bus_GBps_by_channels"] = map_schema(
        "The bus rate with fewer channels, by their number; between them the rate is a power of it.",
        {{"pattern", "^[1-9][0-9]*$"}},
        number_schema("bus_GBps", unit_of("bus_GBps").range, "Bus rate with this number of channels.", "sourced"));
    Json fit = line;
    add_fields<DeviceLibrary::Fit>(fit, "sourced");
    line["description"] = "The same of the protocol for small operands; the fastest of the lines is used.";
    fit["properties"]["small"] = line;
    line["description"] = "The same of the protocol for the smallest operands.";
    fit["properties"]["smallest"] = line;
    Json times = object_schema("Measured times; between them a line.");
    times["required"] = {"source", "bytes", "us"};
    times["properties"] = {{"source", text_schema("Where the times are from.", 1)},
                           {"bytes", {{"description", "Bytes of a rank's operand, rising."}, {"type", "array"}, {"items", {{"type", "number"}}}}},
                           {"us", {{"description", "Time of each."}, {"type", "array"}, {"items", {{"type", "number"}}}}}};
    const auto error = DeviceLibrary::held_out<DeviceLibrary::Line>();
    times["properties"]["error_pct"] = field_schema(error, error.doc, "sourced");
    const Json by_ranks = map_schema("By number of GPUs.", {{"pattern", "^[1-9][0-9]*$"}}, std::move(times));
    fit["properties"]["by_ranks"] = by_ranks;
    fit["properties"]["by_ranks"]["description"] = "By number of GPUs, with all channels; they replace the lines.";
    for (const std::string& kind : collective_names) library["properties"][kind] = fit;
    Json kernel = object_schema("All-reduces of inference by one kernel, measured.");
    kernel["required"] = {"name", "by_ranks"};
    kernel["properties"]["name"] = text_schema("Whose kernel, with its version.", 1);
    add_fields<DeviceLibrary::AllReduce>(kernel, "sourced");
    kernel["properties"]["by_ranks"] = by_ranks;
    Json kernels = object_schema("Kernels that only do all-reduces, by algorithm.");
    kernels.erase("required");
    for (const CollectiveKernel one : all_reduce_kernels) kernels["properties"][name_of(one)] = kernel;
    library["properties"]["all_reduce_kernels"] = kernels;
    return library;
}

Json peaks_schema() {
    Json peaks = object_schema("Data-sheet dense rates by number format, 1e12 operations/s. Follow compute_units * peak_clock_GHz.");
    peaks["required"] = {"fp16", "bf16"};
    for (const std::string& dtype : dtype_names)
        peaks["properties"][dtype] =
            number_schema("peak_TFLOPS", unit_of("peak_TFLOPS").range, "Data-sheet dense rate.", "sourced");
    return peaks;
}
// clang-format on

}  // namespace

// clang-format off
Json calibrated_group_schema(const std::string& group, const std::string& definition) {
    const auto of = [&]<class T>(const char* doc) {
        Json schema = object_schema(doc);
        schema.erase("required");
        schema["properties"]["provenance"] = {
            {"description", "By the name of each fit: what was fitted, on which rows, with which errors."},
            {"type", "object"}};
        add_fields<T>(schema, definition, false);
        return schema;
    };
    if (group == "launch") return of.operator()<DeviceLaunch>("Costs of starting work on a stream.");
    if (group == "variation")
        return of.operator()<DeviceVariation>("How GPUs of one kind differ. Default: not at all.");
    if (group == "dma") {
        Json dma = of.operator()<DeviceDma>("Copy engines and the phases of one copy. Time of a copy alone: "
                                            "command + schedule + start + link latency + bytes / rate + completion.");
        dma["properties"]["commands"] = commands_schema(definition);
        return dma;
    }
    if (group == "copy_kernel") {
        Json kernel = of.operator()<DeviceCopyKernel>(
            "Copies to peers by compute units, and kernels that stream local memory.");
        add_fields<DeviceStream>(kernel, definition, false);
        return kernel;
    }
    if (group == "interference") {
        Json losses = of.operator()<DeviceInterference>(
            "What computation and copies take from each other beyond the sharing of compute units, HBM and links, as "
            "shares of the undisturbed rate.");
        losses["properties"]["weights"] = weights_schema(definition);
        return losses;
    }
    Json energy = of.operator()<DeviceEnergy>("What power goes into. Left out: results have no energy.");
    for (const std::string& dtype : dtype_names) {
        const std::string key = dtype + "_pJ_per_flop";
        energy["properties"][key] = number_schema(key, unit_of(key).range,
            "Energy of a GEMM's FLOP. Left out: not known, and results with such GEMMs have no energy.", definition);
    }
    return energy;
}

Json value_definitions() {
    Json sourced = object_schema("A value with its source. A fitted value says how well it was fitted.");
    sourced["required"] = {"value", "source"};
    Json names = Json::array();
    for (const Unit& unit : units) names.push_back(unit.name);
    sourced["properties"] = {
        {"value", Json::object()},
        {"source", {{"description", "Where the value comes from, one line: data sheet; paper and table; repository, "
                                    "commit and file; 'derived: arithmetic'; 'estimate: reason'."},
                    {"type", "string"}, {"minLength", 8}, {"pattern", "^[^\\n]*\\S[^\\n]*$"}}},
        {"standard_error", {{"description", "Standard error of the fit, in the value's unit."},
                            {"type", "number"}, {"minimum", 0}}},
        {"residual_pct", {{"description", "Mean |error| of the rows fitted to, weighted by how much each depends on "
                                          "this value, percent."}, {"type", "number"}, {"minimum", 0}}},
        {"unit", {{"description", "Unit of the value, as the key's ending says it; 1 for a share or a count."},
                  {"enum", names}}},
        {"file", text_schema("Measurements it was fitted to, from the top of the repository.", 1)},
        {"date", {{"description", "Day of the measurements."},
                  {"type", "string"}, {"pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}}}};
    for (const char* key : {"residual_pct", "unit", "file", "date"}) sourced["dependencies"][key] = {"standard_error"};
    Json fitted{{"description", "A value that was fitted to measurements."},
                {"allOf", {{{"$ref", "#/definitions/sourced"}}}},
                {"required", {"unit", "standard_error", "residual_pct", "file", "date"}}};
    return {{"sourced", sourced}, {"fitted", fitted}};
}
// clang-format on

Json device_schema() {
    Json schema = named_file_schema(
        "Device",
        "One GPU: what it is and what it does. A number is {\"value\", \"source\"}; its unit is in the key. Keys of "
        "launch, dma, copy_kernel, interference, variation and energy may be in configs/calibrations instead: together "
        "both files are complete.",
        newest_version("device"));
    Json& keys = schema["properties"];
    add_fields<DeviceSpec>(schema, "sourced");
    keys["like"] = name_schema(
        "Device whose GEMM calibration, scaled, holds for this one while configs/calibrations has "
        "none of this one. Default: the nearest one by units, clock, peak rates and memory.");
    keys["peak_TFLOPS"] = peaks_schema();
    for (const std::string& group : calibrated_groups)
        keys[group] = calibrated_group_schema(group, "sourced");
    keys["collective_library"] = library_schema();
    for (const char* key : {"peak_TFLOPS", "launch", "dma", "copy_kernel", "interference"})
        schema["required"].push_back(key);
    schema["definitions"] = value_definitions();
    return schema;
}

}  // namespace overlap
