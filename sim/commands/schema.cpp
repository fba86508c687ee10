#include <memory>

#include "models/calibration_schema.hpp"
#include "sim/advise/advise.hpp"
#include "sim/calibrate/command/archive_validation.hpp"
#include "sim/calibrate/recipes/gemm_recipes.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/file_formats.hpp"
#include "sim/compare/compare_cases.hpp"
#include "sim/confidence/accuracy.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/importers/kernel_table.hpp"
#include "sim/plan/plan.hpp"
#include "sim/report/run/report.hpp"
#include "sim/reproduce/published_experiment.hpp"
#include "sim/schedules/host.hpp"
#include "sim/search/search.hpp"
#include "sim/sensitivity/sensitivity.hpp"
#include "sim/topology/device_schema.hpp"
#include "sim/topology/topology.hpp"
#include "sim/transformer/step_request.hpp"

namespace overlap {

namespace {

// clang-format off
const std::vector<FileFormat> formats{
    {"accuracy", accuracy_schema}, {"advice", advice_schema}, {"calibration", [] { Json schema = calibration_schema(); schema["properties"]["validation"] = validation_schema(); return schema; }}, {"device", device_schema},
    {"experiment", experiment_schema}, {"host", host_schema}, {"kernels", kernel_table_schema}, {"measured_case", measured_case_schema},
    {"model", [] { return model_schema(families_of(ConfigFolder::standard())); }}, {"plan", plan_schema}, {"recipe", recipe_schema}, {"result", result_schema}, {"run", run_schema},
    {"schedule", preset_schema}, {"search", search_schema}, {"sensitivity", sensitivity_schema}, {"sweep", sweep_schema}, {"tiles", tiles_schema},
    {"tolerances", tolerances_schema}, {"topology", topology_schema}, {"workload", [] { return workload_schema(false); }}};
// clang-format on

Json schema_of(const std::string& kind) {
    const std::vector<std::string> kinds = mapped(formats, &FileFormat::kind);
    return formats[known_place(kind, kinds, "schema: " + in_quotes(kind) + " is no kind of file")].schema();
}

}  // namespace

std::span<const FileFormat> file_formats() {
    return formats;
}

const FileFormat& format_of(const Json& json, const std::string& file) {
    const FileFormat* found = nullptr;
    std::ptrdiff_t most = 0;
    for (const FileFormat& format : formats) {
        const Json schema = format.schema();
        std::ptrdiff_t score = 0;  // its keys and the required ones less all others
        for (const auto& item : json.items()) score += schema["properties"].contains(item.key()) ? 2 : -2;
        for (const Json& key : schema.value("required", Json::array()))
            score += json.contains(key.get<std::string>()) ? 1 : -1;
        if (format.kind == "model" && json.contains("model_type")) return format;
        if (score <= most) continue;
        most = score;
        found = &format;
    }
    if (found == nullptr)
        throw UserError(file + ": is no file of ours (" + joined(mapped(formats, &FileFormat::kind)) + ")");
    return *found;
}

void add_schema_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand("schema", "The JSON schema of a kind of file");
    auto kind = std::make_shared<std::string>();
    command->add_option("kind", *kind, "device, calibration, topology, workload, run, sweep ...")->required();
    command->callback([kind] { print(in_lines(schema_of(*kind), 400) + '\n'); });
}

}  // namespace overlap
