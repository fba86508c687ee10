#include "sim/run/run_config.hpp"

#include "sim/core/file_version.hpp"
#include "sim/core/shown.hpp"

namespace overlap {

RunConfig read_run_config(const Json& json, const std::string& origin) {
    const Json newest = upgraded(json, "run", origin);
    ConfigObject config(newest, origin);
    RunConfig result;
    result.origin = origin;
    if (config.has("schema")) config.integer("schema", 1, 1);
    if (config.has("topology")) result.topology = config.text("topology");
    if (config.has("schedule")) result.schedule = config.text("schedule");
    if (config.has("params")) {
        config.object("params");
        result.params = config.raw("params");
    }
    if (config.has("schedules")) {
        config.object("schedules");
        result.schedules = config.raw("schedules");
    }
    if (config.has("workload")) {
        result.workload = config.raw("workload");
        if (!result.workload.is_string() && !result.workload.is_object())
            config.fail("workload", "is " + shown(result.workload) + ", expected a file name or an object");
    }
    if (config.has("engine")) result.engine = config.text("engine");
    if (config.has("seeds")) result.seeds = static_cast<int>(config.integer("seeds", 1, most_seeds));
    if (config.has("cost_models")) result.cost_models = config.texts("cost_models");
    if (config.has("without")) result.without = config.texts("without");
    if (config.has("host")) result.host = config.text("host");
    if (config.has("repeat")) result.repeat = static_cast<Repeat>(config.choice("repeat", repeat_names));
    if (config.has("what_if")) result.what_if = config.raw("what_if");
    config.finish();
    return result;
}

}  // namespace overlap
