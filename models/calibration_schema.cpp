#include "models/calibration_schema.hpp"

#include "models/gemm_parameters.hpp"
#include "models/gemm_times.hpp"
#include "models/kernel_calibration.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/output_keys.hpp"
#include "sim/topology/device.hpp"
#include "sim/topology/device_schema.hpp"

namespace overlap {
namespace {

Json measured_on_schema() {
    const Json gpus{{"description", "Numbers of GPUs that were measured."},
                    {"type", "array"},
                    {"minItems", 1},
                    {"items", whole_from(1, "GPUs of the machine.")}};
    return {
        {"description",
         "Links and numbers of GPUs of the machines that were measured. Errors of what happens between GPUs are "
         "claimed for these machines only."},
        {"type", "object"},
        {"additionalProperties", false},
        {"required", {"fabric"}},
        {"properties",
         {{"fabric",
           {{"description", "The topology's fabric, as numbers."}, {"type", "array"}, {"minItems", 1}}},
          {"schedules", gpus},
          {"copies", gpus},
          {"library", gpus}}}};
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
        "Whose kernels run: one of gemm_libraries, where it has the number format, or the mix of all that is gemm; or, of "
        "several, a library of grouped GEMMs.");
    keys["gemm_libraries"] =
        map_schema("The same as gemm for each kernel library alone, where a table tells them apart.",
                   {{"pattern", keys["gemm_library"]["pattern"]}}, by_dtype, 1);
    keys["attention_library"] = name_schema(
        "Whose attention is priced: a library that fits of attention name, where it has the number format. Default: "
        "those of kernels alone, where there are any.");
    keys["grouped_library"] = name_schema(
        "Whose grouped GEMMs are priced: a library that fits of moe name, where it has the number format. Default: "
        "gemm_library, where it has any, else those of fused layers.");
    for (const std::string& group : calibrated_groups) {
        keys[group] = calibrated_group_schema(group, "fitted");
        keys[group]["required"] = {"provenance"};
    }
    for (const std::string& group : kernel_groups) keys[group] = kernel_group_schema(group);
    keys["measured_gemms"] = measured_gemms_schema();
    keys["validation"] = {{"description", "What the fits predict of the machine that they were fitted to."},
                          {"type", "object"}};
    keys["measured_on"] = measured_on_schema();
    schema["definitions"] = value_definitions();
    schema["definitions"]["gemm"] = gemm_parameters_schema();
    return schema;
}

}  // namespace overlap
