#include "sim/run/run_config.hpp"

#include <functional>

#include "sim/core/fields.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/shown.hpp"
#include "sim/schedules/parameters.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {
namespace {

/// One key of a run config.
struct RunKey {
    std::string key;
    Json schema;  ///< of the value, with its "description"
    std::function<void(ConfigObject&, const std::string& key, RunConfig&)> read;
    std::function<Json(const RunConfig&)> write;  ///< null: a resolved config leaves the key out
};

RunKey text(const std::string& key, std::string RunConfig::*member, const std::string& doc) {
    return {
        key, text_schema(doc, 1),
        [=](ConfigObject& config, const std::string& name, RunConfig& to) { to.*member = config.text(name); },
        [=](const RunConfig& from) { return or_null(from.*member); }};
}

RunKey texts(const std::string& key, std::vector<std::string> RunConfig::*member, const std::string& doc) {
    return {key,
            {{"description", doc}, {"type", "array"}, {"items", {{"type", "string"}, {"minLength", 1}}}},
            [=](ConfigObject& config, const std::string& name, RunConfig& to) {
                to.*member = config.texts(name);
            },
            [=](const RunConfig& from) { return Json(from.*member); }};
}

/// An object that is read with the schedule, the machine or the list that it is about.
RunKey object(const std::string& key, Json RunConfig::*member, const Json& schema) {
    const auto read = [=](ConfigObject& config, const std::string& name, RunConfig& to) {
        config.object(name);
        to.*member = config.raw(name);
    };
    return {key, schema, read,
            [=](const RunConfig& from) { return (from.*member).empty() ? Json() : from.*member; }};
}

void read_workload_of_run(ConfigObject& config, const std::string& key, RunConfig& to) {
    to.workload = config.raw(key);
    if (!to.workload.is_string() && !to.workload.is_object())
        config.fail(key, "is " + shown(to.workload) + ", expected a file name or an object");
}

// clang-format off
std::vector<RunKey> make_keys() {
    Json pair = object_schema("The schedule of one pair.");
    pair["properties"] = {{"schedule", name_schema("Name of a schedule of pairs.")}, {"params", {{"description", "Parameters of this schedule, as in 'params' of the run."}, {"type", "object"}}}};
    pair["required"] = {"schedule"};
    RunKey schedule = text("schedule", &RunConfig::schedule, "");
    schedule.schema = name_schema("Name of a schedule, as 'sim list' shows it.");
    RunKey params = object("params", &RunConfig::params, parameters_schema());
    params.write = [](const RunConfig& from) { return from.params; };
    RunKey without = texts("without", &RunConfig::without, "Effects to switch off, as in 'sim --without contention'.");
    without.schema["uniqueItems"] = true;
    // WhatIf refuses what is no object.
    RunKey what_if = object("what_if", &RunConfig::what_if, map_schema("Values of the machine's files in this run. A key is a path into the topology file "
        "(topology.fabric.0.bandwidth_GBps) or the device's file or calibration (device.dma.peer_engines, device.gemm.bf16.peak_TFLOPS); the value replaces the file's, "
        "or multiplies it as \"2x\" does.", {{"pattern", "^(topology|device)\\.[^.]+(\\.[^.]+)*$"}}, {{"type", {"string", "number", "boolean"}}}));
    what_if.read = [](ConfigObject& config, const std::string& key, RunConfig& to) { to.what_if = config.raw(key); };
    return {
        {"schema", {{"description", "Version of this file format."}, {"const", 1}},
            [](ConfigObject& config, const std::string& key, RunConfig&) { config.integer(key, 1, 1); }, [](const RunConfig&) { return 1; }},
        text("topology", &RunConfig::topology, "Topology file; a bare name is looked up in configs/topologies."),
        std::move(schedule),
        std::move(params),
        {"workload", {{"description", "Workload file (a bare name is looked up in configs/workloads), or what would be in it; default " + default_workload + "."},
                      {"oneOf", {text_schema("Workload file.", 1), workload_schema(true)}}},
            read_workload_of_run, [](const RunConfig& from) { return from.workload; }},
        text("engine", &RunConfig::engine, "Name of the engine, as 'sim list' shows it; default " + default_engine + "."),
        {"seeds", {{"description", "Simulations with orders that the machine leaves unspecified; default " + std::to_string(default_seeds) + " on such a machine, else 1."},
                   {"type", "integer"}, {"minimum", 1}, {"maximum", most_seeds}},
            [](ConfigObject& config, const std::string& key, RunConfig& to) { to.seeds = static_cast<int>(config.integer(key, 1, most_seeds)); },
            [](const RunConfig& from) { return or_null(from.seeds); }},
        texts("cost_models", &RunConfig::cost_models, "Cost models instead of the defaults, by name, as 'sim list' shows them."),
        std::move(without),
        text("host", &RunConfig::host, "Who enqueues: a file, or a name in configs/hosts. Left out: all is enqueued beforehand by one thread."),
        {"repeat", {{"description", "once: one run from cool GPUs (default). steady: back to back until the clocks have settled at the power limit."}, {"enum", repeat_names}},
            [](ConfigObject& config, const std::string& key, RunConfig& to) { to.repeat = static_cast<Repeat>(config.choice(key, repeat_names)); },
            [](const RunConfig& from) { return from.repeat == Repeat::once ? Json() : Json(repeat_names[static_cast<std::size_t>(from.repeat)]); }},
        std::move(what_if),
        object("schedules", &RunConfig::schedules, map_schema("Of a list of operators: by the name of a GEMM the schedule of its pair, the GEMM and a collective before or behind it, "
            "instead of 'schedule'.", {{"type", "string"}}, pair))};
}
// clang-format on

const std::vector<RunKey>& run_keys() {
    static const std::vector<RunKey> keys = make_keys();
    return keys;
}

}  // namespace

RunConfig read_run_config(const Json& json, const std::string& origin) {
    const Json newest = upgraded(json, "run", origin);
    ConfigObject config(newest, origin);
    RunConfig result;
    result.origin = origin;
    for (const RunKey& key : run_keys())
        if (config.has(key.key)) key.read(config, key.key, result);
    config.finish();
    return result;
}

Json to_json(const RunConfig& config) {
    Json json = Json::object();
    for (const RunKey& key : run_keys())
        if (Json value = key.write(config); !value.is_null()) json[key.key] = std::move(value);
    return json;
}

Json run_schema() {
    Json schema =
        file_schema("Run config", "One simulation: a file, a line of 'sim batch', or the flags of 'sim'.");
    schema["required"] = {"topology", "schedule"};
    for (const RunKey& key : run_keys()) schema["properties"][key.key] = key.schema;
    return schema;
}

std::vector<std::string> swept_keys() {
    std::vector<std::string> keys;
    for (const RunKey& key : run_keys())
        if (key.key != "schema" && key.key != "params" && key.key != "what_if") keys.push_back(key.key);
    return keys;
}

}  // namespace overlap
