#include "models/gemm_libraries.hpp"

#include <vector>

#include "models/kernel_calibration.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/ranges.hpp"
#include "sim/topology/derived_values.hpp"
#include "sim/topology/device.hpp"

namespace overlap {

std::map<std::string, GemmLibrary> read_gemm_libraries(const ConfigFile& file) {
    std::map<std::string, GemmLibrary> libraries;
    ConfigObject config = file.view();
    if (!config.has("gemm_libraries")) return libraries;
    ConfigObject group = config.object("gemm_libraries");
    for (const std::string& name : group.keys()) {
        ConfigObject library = group.object(name);
        libraries.emplace(name, read_gemm_parameters(library));
    }
    group.finish();
    return libraries;
}

void choose_gemm_library(const ConfigFile& file, std::map<DType, GemmParameters>& parameters) {
    const std::map<std::string, GemmLibrary> libraries = read_gemm_libraries(file);
    ConfigObject config = file.view();
    if (!libraries.empty()) config.raw("gemm_library");  // says which is the default
    std::vector<std::string> names{mixed_libraries};
    for (const auto& [name, library] : libraries) names.push_back(name);
    const std::vector<std::string> grouped = libraries_in(file, kernel_groups[2]);
    if (grouped.size() > 1) append(names, grouped);  // read_kernel_calibration chooses these
    const auto chosen = libraries.find(chosen_library(config, "gemm_library", names));
    if (chosen == libraries.end()) return;
    for (const auto& [dtype, own] : chosen->second) parameters.insert_or_assign(dtype, own);
}

std::optional<std::string> library_of_gemms(const ConfigFile& file, DType dtype) {
    const auto named_in = [&](const Json::json_pointer& group) -> std::optional<std::string> {
        const Json::json_pointer name = group / name_of(dtype) / "library";
        if (!file.json.contains(name) || !file.json.at(name).is_string()) return std::nullopt;
        return file.json.at(name).get<std::string>();
    };
    const std::string chosen = file.json.value("gemm_library", mixed_libraries);
    if (chosen != mixed_libraries)
        if (auto own = named_in(Json::json_pointer("/gemm_libraries") / chosen)) return own;
    return named_in(Json::json_pointer("/gemm"));
}

std::map<DType, GemmParameters> read_gemm_calibration(const std::filesystem::path& path) {
    return read_gemm_calibration(read_config_file(path, "calibration"));
}

std::map<DType, GemmParameters> read_gemm_calibration(const ConfigFile& file) {
    ConfigObject config = file.view();
    const int version = newest_version("calibration");
    config.integer("schema", version, version);
    config.text("device");
    for (const std::string& group : calibrated_groups)  // read together with the device file
        if (config.has(group)) config.raw(group);
    if (config.has("measured_gemms")) config.raw("measured_gemms");  // read_gemm_times reads it
    for (const std::string& group : kernel_groups)                   // read_kernel_calibration
        if (config.has(group)) config.raw(group);
    for (const std::string key : {"validation", "measured_on"})  // evidence_of reads them
        if (config.has(key)) config.raw(key);
    // choose_gemm_library and read_kernel_calibration read them
    for (const std::string key : {"gemm_library", "gemm_libraries", "attention_library", "grouped_library"})
        if (config.has(key)) config.raw(key);
    ConfigObject gemm = config.object("gemm");
    auto result = read_gemm_parameters(gemm);
    config.finish();
    choose_gemm_library(file, result);
    return result;
}

}  // namespace overlap
