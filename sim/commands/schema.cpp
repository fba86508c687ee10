#include <memory>

#include "models/calibration/recipes/gemm_recipes.hpp"
#include "models/calibration_schema.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/graph_export.hpp"
#include "sim/compare/compare_cases.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/run/report.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/run/run_config.hpp"
#include "sim/schedules/host.hpp"
#include "sim/schedules/parameters.hpp"
#include "sim/sweep/axes.hpp"
#include "sim/topology/device_schema.hpp"
#include "sim/topology/topology.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

namespace {

/// What the program knows by tables is made of them; the rest is in the file of that kind.
Json schema_of(const std::string& kind) {
    if (kind == "device") return device_schema();
    if (kind == "calibration") return calibration_schema();
    if (kind == "recipe") return recipe_schema();
    if (kind == "topology") return topology_schema();
    if (kind == "host") return host_schema();
    if (kind == "workload") return workload_schema(false);
    if (kind == "run") return run_schema();
    if (kind == "result") return result_schema();
    if (kind == "plan") return plan_schema();
    const ConfigFolder folder = ConfigFolder::standard();
    const auto file = [&](const std::string& name) {
        return read_json_file(folder.find("schema", name + ".schema"));
    };
    std::vector<std::string> kinds;
    for (const std::string& name : folder.names("schema")) kinds.push_back(name.substr(0, name.find('.')));
    if (!contains(kinds, kind))
        throw UserError("schema: " + in_quotes(kind) + " is no kind of file" + suggestion(kind, kinds));
    Json schema = file(kind);
    if (kind == "schedule") schema["properties"]["params"] = parameters_schema();
    if (kind == "experiment") {
        const Json sweep = file("sweep");
        for (const auto& item : schema["properties"]["scenarios"]["properties"].items())
            item.value() = sweep["properties"][item.key()];
        schema["definitions"] = sweep["definitions"];
    }
    if (kind == "experiment" || kind == "sweep") {
        schema["definitions"]["field"]["pattern"] = field_pattern();
        schema["definitions"]["base"]["properties"] = run_schema()["properties"];
        schema["definitions"]["base"]["properties"]["workload"] = Json::object();  // also a layer of a model
    }
    if (kind == "tolerances") {
        Json& where = schema["properties"]["claims"]["items"]["properties"]["where"]["properties"];
        for (const std::string& label : comparison_labels()) where[label] = {{"type", "string"}};
        where["task"]["enum"] = task_kind_names;
    }
    if (kind == "measured_case") {
        schema["properties"]["spans"]["items"]["properties"]["kind"]["enum"] = task_kind_names;
        const Json run = run_schema();
        for (const char* key : {"required", "properties"}) schema["properties"]["scenario"][key] = run[key];
        schema["properties"]["scenario"]["additionalProperties"] = false;
    }
    return schema;
}

}  // namespace

void add_schema_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand("schema", "The JSON schema of a kind of file");
    auto kind = std::make_shared<std::string>();
    command->add_option("kind", *kind, "device, calibration, topology, workload, run, sweep ...")->required();
    command->callback([kind] { print(in_lines(schema_of(*kind), 400) + '\n'); });
}

}  // namespace overlap
