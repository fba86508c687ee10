#include "models/calibration_schema.hpp"

#include "models/gemm_parameters.hpp"
#include "models/kernel_calibration.hpp"
#include "sim/core/file_version.hpp"
#include "sim/topology/device.hpp"
#include "sim/topology/device_schema.hpp"

namespace overlap {
namespace {

Json provenance_schema(const std::string& what) {
    return {{"description", what}, {"type", "object"}, {"minProperties", 1}};
}

Json gemm_schema() {
    Json gemm = object_schema("Parameters of the GEMM cost model for one number format.");
    gemm["required"] = {"provenance", "tiles"};
    Json& keys = gemm["properties"];
    keys["library"] = text_schema(
        "Whose kernels were timed, in words: every output with a price of these GEMMs says it.", 1);
    keys["provenance"] =
        provenance_schema("What was fitted, on which rows, with which errors; or what it was derived from.");
    add_fields<GemmParameters>(gemm, "sourced", true, GemmParameters::fixed_fields());
    add_fields<GemmParameters>(gemm, "sourced");
    Key tile;
    tile.range = tile_efficiency;
    keys["tiles"] = map_schema(
        "Efficiency of each macro-tile, rows x columns of C.", {{"pattern", "^[1-9][0-9]*x[1-9][0-9]*$"}},
        sourced_schema(tile, "Main-loop rate with this tile, as a share of peak_TFLOPS.", "sourced"), 1);
    return gemm;
}

/// Keys "bf16_us", "fp8_accumulated_us", …: numbers by shape.
Json measured_schema() {
    const auto by_shape = [](const std::string& what, const Json& value) {
        return map_schema(what, {{"pattern", "^[1-9][0-9]*x[1-9][0-9]*x[1-9][0-9]*$"}}, value);
    };
    std::string dtypes;
    for (const std::string& dtype : dtype_names) dtypes += (dtypes.empty() ? "" : "|") + dtype;
    const std::string prefix = "^(" + dtypes + ")(_accumulated)?_";
    Json schema = object_schema(
        "Library GEMMs that were measured alone, microseconds and tiles by MxNxK; with _accumulated, C is read as well.");
    schema["required"] = {"provenance"};
    schema["properties"]["provenance"] =
        provenance_schema("What was measured, in which files, and what is kept of it.");
    schema["patternProperties"][prefix + "us$"] =
        by_shape("Time by shape, microseconds.", {{"type", "number"}, {"minimum", 0.001}, {"maximum", 1e9}});
    schema["patternProperties"][prefix + "tiles$"] = by_shape(
        "Tiles that the library cut C into, by shape; a split K counts once. Of shapes with a time only.",
        {{"type", "integer"}, {"minimum", 1}, {"maximum", 1'000'000'000}});
    return schema;
}

Json errors_schema(const std::string& what) {
    const auto number = [](const std::string& doc) { return Json{{"description", doc}, {"type", "number"}}; };
    Json errors = object_schema(what);
    errors["required"] = {"cases", "mean_error_pct", "p90_error_pct", "bias_pct"};
    errors["properties"] = {
        {"cases", {{"description", "Measurements."}, {"type", "integer"}, {"minimum", 1}}},
        {"mean_error_pct", number("Mean of |predicted / measured - 1|.")},
        {"p90_error_pct", number("Nine of ten are below.")},
        {"bias_pct", number("Mean with sign.")}};
    return errors;
}

Json validation_schema() {
    Json schema = object_schema("How far predictions were from measurements that no fit saw.");
    schema["required"] = {"provenance", "sentence", "classes"};
    Json& keys = schema["properties"];
    keys["provenance"] = provenance_schema("Archive, machine and date.");
    keys["sentence"] = text_schema("The same in a sentence.", 1);
    keys["classes"] = map_schema("Errors of single operations by class.", {{"minLength", 1}},
                                 errors_schema("Errors of a class."));
    keys["schedules"] = errors_schema("Makespans of whole schedules of drawn operators.");
    keys["choices"] = object_schema("The schedule that is predicted to be the fastest of an operator.");
    keys["choices"]["required"] = {"operators", "best_within_2pct", "mean_regret_pct"};
    keys["choices"]["properties"] = {
        {"operators",
         {{"description", "Operators with two schedules and more."}, {"type", "integer"}, {"minimum", 1}}},
        {"best_within_2pct",
         {{"description", "Share of operators where it is within 2 % of the measured best, in %."},
          {"type", "number"}}},
        {"mean_regret_pct",
         {{"description", "How much longer than the measured best it takes, mean."}, {"type", "number"}}}};
    return schema;
}

}  // namespace

Json calibration_schema() {
    Json schema = file_schema(
        "Calibration",
        "Fitted parameters of the cost models for one device. Those of its groups launch, dma, copy_kernel, "
        "interference, variation and energy are laid over its file in configs/devices.",
        newest_version("calibration"));
    schema["required"] = {"schema", "device", "gemm"};
    Json& keys = schema["properties"];
    keys["device"] =
        name_schema("Device the parameters belong to: this file's name, and a file in configs/devices.");
    const Json gemm{{"$ref", "#/definitions/gemm"}};
    const Json by_dtype =
        map_schema("Parameters of the GEMM cost model by number format.", {{"enum", dtype_names}}, gemm, 1);
    keys["gemm"] = by_dtype;
    keys["gemm_library"] = name_schema(
        "Whose kernels run: one of gemm_libraries, where it has the number format, or the mix of all that is gemm.");
    keys["gemm_libraries"] =
        map_schema("The same as gemm for each kernel library alone, where a table tells them apart.",
                   {{"pattern", keys["gemm_library"]["pattern"]}}, by_dtype, 1);
    for (const std::string& group : calibrated_groups) {
        keys[group] = calibrated_group_schema(group, "fitted");
        keys[group]["required"] = {"provenance"};
    }
    for (const std::string& group : kernel_groups) keys[group] = kernel_group_schema(group);
    keys["measured_gemms"] = measured_schema();
    keys["validation"] = validation_schema();
    schema["definitions"] = value_definitions();
    schema["definitions"]["gemm"] = gemm_schema();
    return schema;
}

}  // namespace overlap
