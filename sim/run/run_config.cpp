#include "sim/run/run_config.hpp"

#include "sim/core/input_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/schedules/parameters.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {
namespace {

void read_workload_of_run(ConfigObject& config, const std::string& key, RunConfig& to) {
    to.workload = config.raw(key);
    if (!to.workload.is_string() && !to.workload.is_object())
        config.fail(key, "is " + shown(to.workload) + ", expected a file name or an object");
}

void read_plan_of_run(ConfigObject& config, const std::string& key, RunConfig& to) {
    to.plan = config.raw(key);
    if (!to.plan.is_string() && !to.plan.is_object())
        config.fail(key, "is " + shown(to.plan) + ", expected a file name or an object");
}

// clang-format off
Json pair_schema() {
    Json pair = object_schema("The schedule of one pair.");
    pair["properties"] = {{"schedule", name_schema("Name of a schedule of pairs.")}, {"params", {{"description", "Parameters of this schedule, as in 'params' of the run."}, {"type", "object"}}}};
    pair["required"] = {"schedule"};
    return pair;
}

InputKeys<RunConfig> run_keys() {
    using R = RunConfig;
    using Key = InputKey<R>;
    static const std::vector<Key> keys{
        version_key<R>("run").optional(),
        text_key<R>("topology", &R::topology, "Topology file; a bare name is looked up in configs/topologies.").optional(),
        text_key<R>("schedule", &R::schedule, "").optional().but([](Key& key) { key.schema = name_schema("Name of a schedule, as 'sim list' shows it."); }),
        Key("plan", {{"description", "Instead of schedule, params and workload: a plan (plan.schema.json), or its file."}, {"type", {"string", "object"}}},
            read_plan_of_run, [](const R& from) { return from.plan.is_null() ? left_out : from.plan; }).optional(),
        object_key<R>("params", &R::params, Json()).optional().but([](Key& key) { key.value = &R::params; }),
        Key("workload", {{"description", "Workload file (a bare name is looked up in configs/workloads), or what would be in it; default " + default_workload + "."}},
            read_workload_of_run, &R::workload).optional(),
        text_key<R>("engine", &R::engine, "Name of the engine, as 'sim list' shows it; default " + default_engine + ".").optional(),
        Key("seeds", {{"description", "Simulations with orders that the machine leaves unspecified; default " + std::to_string(default_seeds) + " on such a machine, else 1."},
                      {"type", "integer"}, {"minimum", 1}, {"maximum", most_seeds}},
            [](ConfigObject& from, const std::string& key, R& to) { to.seeds = static_cast<int>(from.integer(key, 1, most_seeds)); },
            [](const R& from) { return from.seeds ? Json(*from.seeds) : left_out; }).optional(),
        texts_key<R>("cost_models", &R::cost_models, "Cost models instead of the defaults, by name, as 'sim list' shows them.").optional(),
        texts_key<R>("without", &R::without, "Effects to switch off, as in 'sim --without contention'.").optional().but([](Key& key) { key.schema["uniqueItems"] = true; }),
        text_key<R>("host", &R::host, "Who enqueues: a file, or a name in configs/hosts. Left out: a thread or process a GPU has enqueued everything beforehand (threads).").optional(),
        Key(plain_field<&R::repeat>("repeat", repeat_names, "once: one run from cool GPUs. steady: back to back until the clocks have settled at the power limit.").optional())
            .but([](Key& key) { key.value = [](const R& from) { return from.repeat == Repeat::once ? left_out : Json(repeat_names[1]); }; }),
        // WhatIf refuses what is no object.
        object_key<R>("what_if", &R::what_if, map_schema("Values of the machine's files in this run. A key is a path into the topology file "
            "(topology.fabric.0.bandwidth_GBps) or the device's file or calibration (device.dma.peer_engines, device.gemm.bf16.peak_TFLOPS); the value replaces the file's, "
            "or multiplies it as \"2x\" does.", {{"pattern", "^(topology|device)\\.[^.]+(\\.[^.]+)*$"}}, {{"type", {"string", "number", "boolean"}}}))
            .optional().but([](Key& key) { key.read = [](ConfigObject& from, const std::string& name, R& to) { to.what_if = from.raw(name); }; }),
        object_key<R>("schedules", &R::schedules, map_schema("Of a list of operators: by the name of a GEMM the schedule of its pair, the GEMM and a collective before or behind it, "
            "instead of 'schedule'.", {{"type", "string"}}, pair_schema())).optional()};
    return keys;
}
// clang-format on

}  // namespace

RunConfig read_run_config(const Json& json, const std::string& origin) {
    const Json newest = upgraded(json, "run", origin);
    ConfigObject config(newest, origin);
    RunConfig given;
    given.origin = origin;
    return read_keys(config, run_keys(), given);
}

Json to_json(const RunConfig& config) {
    return written(config, run_keys());
}

Json run_schema() {
    Json schema = file_of_keys(
        "Run config", "One simulation: a file, a line of 'sim batch', or the flags of 'sim'.", run_keys());
    // Longer than all others, so not made for every run.
    schema["properties"]["params"] = parameters_schema();
    schema["properties"]["workload"]["oneOf"] = {text_schema("Workload file.", 1), workload_schema(true)};
    schema["required"] = {"topology"};
    schema["anyOf"] = {{{"required", {"schedule"}}}, {{"required", {"plan"}}}};
    return schema;
}

std::vector<std::string> swept_keys() {
    std::vector<std::string> keys;
    for (const InputKey<RunConfig>& key : run_keys())
        if (key.key != "schema" && key.key != "params" && key.key != "what_if") keys.push_back(key.key);
    return keys;
}

}  // namespace overlap
