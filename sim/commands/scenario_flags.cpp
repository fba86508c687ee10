#include "sim/commands/scenario_flags.hpp"

#include <spdlog/spdlog.h>

#include "sim/chakra/chakra_workload.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/engine/simgrid_limit.hpp"

namespace overlap {
namespace {

const std::string command_line = "command line";

/// "chunks=4" → {"chunks": 4}; a value that is no JSON is text.
void assign(Json& values, const std::string& assignment, const std::string& flag,
            const std::string& expected) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
        throw UserError(command_line + ": " + flag + " is " + in_quotes(assignment) + ", expected " +
                        expected);
    if (!values.is_object()) return;  // from a config file: refused when it is resolved
    const std::string value = valid_utf8(assignment.substr(equals + 1));
    const Json parsed = Json::parse(value, nullptr, false);
    values[valid_utf8(assignment.substr(0, equals))] =
        parsed.is_discarded() || parsed.is_structured() ? Json(value) : parsed;
}

/// The pair that the flags change: the workload's own, or a plain all-gather before a bf16 GEMM.
Json changed_workload(const WorkloadFlags& flags, const RunConfig& config, const ConfigFolder& folder) {
    ConfigFile file{config.workload, config.origin + ": /workload"};
    if (file.json.is_string() && is_chakra_trace(file.json.get<std::string>())) {
        file = {read_chakra(file.json.get<std::string>()).workload, file.json.get<std::string>()};
    } else if (file.json.is_string()) {
        file = read_config_file(folder.find("workloads", file.json.get<std::string>()), "workload");
        require_kind(file.json, file.name, FileKind::workload);
    }
    ConfigObject given = file.view();
    const bool only_order = (flags.gemm + flags.dtype + flags.collective + flags.shard_dim).empty();
    if (given.has("operators") && only_order && contains(list_order_names, flags.order)) {
        file.json["order"] = flags.order;
        return file.json;
    }
    if (given.has("operators"))
        throw UserError(
            file.name +
            ": lists operators, which --gemm, --dtype, --collective, --shard-dim and orders other than "
            "program and data can't change");
    if (given.has("gemm")) given.object("gemm");
    Json& pair = file.json;
    for (const char* key : {"name", "description", "source"}) pair.erase(key);
    if (!flags.gemm.empty()) {
        const GemmShape shape = parse_shape(flags.gemm, "command line: --gemm");
        pair["gemm"].update({{"m", shape.m}, {"n", shape.n}, {"k", shape.k}});
    }
    if (!flags.dtype.empty()) pair["gemm"]["dtype"] = flags.dtype;
    if (!flags.collective.empty()) {
        pair["collective"] = flags.collective;
        pair.erase("order");
        pair.erase("shard_dim");
    }
    if (!flags.order.empty()) pair["order"] = flags.order;
    if (!flags.shard_dim.empty()) pair["shard_dim"] = flags.shard_dim;
    return pair;
}

}  // namespace

void WorkloadFlags::add_to(CLI::App& app) {
    app.add_option("--workload", workload,
                   "A file, or a name in configs/workloads; default " + default_workload);
    app.add_option("--gemm", gemm, "GEMM of one GPU, MxNxK after the gather, instead of the workload's");
    app.add_option("--dtype", dtype, "Data type instead of the workload's");
    app.add_option("--collective", collective, "Collective instead of the workload's");
    app.add_option("--order", order,
                   "collective_first, gemm_first or independent; of a list: program or data");
    app.add_option("--shard-dim", shard_dim, "m, or k if the tokens are in K");
}

void WorkloadFlags::apply(RunConfig& config, const ConfigFolder& folder) const {
    if (!workload.empty()) config.workload = workload;
    if (!workload.empty() && is_chakra_trace(workload))
        for (const std::string& note : read_chakra(workload).notes) spdlog::warn("{}: {}", workload, note);
    if (!(gemm + dtype + collective + order + shard_dim).empty())
        config.workload = changed_workload(*this, config, folder);
}

RunConfig ScenarioFlags::config(const ConfigFolder& folder) const {
    RunConfig config;
    config.origin = command_line;
    if (!file.empty()) {
        Json json = read_json_file(file);
        require_kind(json, file, FileKind::run_config);
        if (json.is_object()) json.erase("graph");  // so that the output of --dry-run is also a config
        config = read_run_config(json, file);
    }
    const auto replace = [](std::string& value, const std::string& flag) {
        if (!flag.empty()) value = flag;
    };
    replace(config.topology, topology);
    replace(config.schedule, schedule);
    if (!plan.empty()) config.plan = plan;
    replace(config.engine, engine);
    replace(config.host, host);
    if (seeds) config.seeds = seeds;
    workload.apply(config, folder);
    for (const std::string& assignment : params)
        assign(config.params, assignment, "--set", "NAME=VALUE, for instance chunks=4");
    assign_what_ifs(config.what_if, what_if);
    if (!cost_models.empty()) config.cost_models = cost_models;
    if (!without.empty()) config.without = without;
    if (steady) config.repeat = Repeat::steady;
    return config;
}

void assign_what_ifs(Json& what_if, const std::vector<std::string>& assignments) {
    for (const std::string& assignment : assignments)
        assign(what_if, assignment, "--what-if", "KEY=VALUE, for instance device.dma.peer_engines=4");
}

CLI::Option* add_topology_flags(CLI::App& app, std::string& topology, const std::string& meaning) {
    CLI::Option* option =
        app.add_option("--topology", topology, meaning + ": a file, or a name (see: sim list topologies)");
    // Values are set in the order in which options were added.
    app.add_option_function<std::int64_t>(
           "--nodes",
           [&topology](std::int64_t nodes) {
               if (topology.empty()) return;  // needs() says so
               topology = ConfigFolder::standard().clusters().name_of(topology, nodes, command_line + ": ");
           },
           "Nodes of the cluster that --topology names (see: sim list topologies)")
        ->needs(option);
    return option;
}

void add_what_if_flag(CLI::App& app, std::vector<std::string>& what_ifs) {
    app.add_option("--what-if", what_ifs,
                   "Replace a value of the topology or device file in this run: KEY=VALUE, such as "
                   "device.dma.peer_engines=4; or multiply it, such as topology.fabric.0.bandwidth_GBps=2x; "
                   "repeatable")
        ->take_all();
    // Values are set in the order in which options were added.
    app.add_option_function<std::string>(
        "--library",
        [&what_ifs](const std::string& name) { what_ifs.push_back("device.gemm_library=" + name); },
        "Whose GEMMs to price, of those that the device's calibration has (gemm_libraries, and grouped GEMMs of moe); as "
        "--what-if device.gemm_library=NAME");
    app.add_option_function<std::string>(
        "--attention",
        [&what_ifs](const std::string& name) { what_ifs.push_back("device.attention_library=" + name); },
        "Whose attention to price, of those that the device's calibration has (attention_prefill, attention_decode); as "
        "--what-if device.attention_library=NAME");
}

void add_host_flags(CLI::App& app, std::string& host, bool& steady) {
    app.add_option("--host", host,
                   "Host program that enqueues the kernels, and the time of each of its calls: a file, or a "
                   "name in configs/hosts; default: all is enqueued before the run starts");
    app.add_flag("--steady", steady,
                 "Run the workload back to back until the clocks have settled at the power limit, instead of "
                 "once on cool GPUs");
}

void ScenarioFlags::add_to(CLI::App& app) {
    add_topology_flags(app, topology);
    app.add_option("--schedule", schedule, "Overlap schedule (see: sim list)");
    app.add_option(
        "--plan", plan,
        "Plan instead of a schedule, as --graph writes it or written by hand (see: sim schema plan)");
    app.add_option("--set", params, "Schedule parameter NAME=VALUE (see: sim explain SCHEDULE); repeatable")
        ->take_all();
    add_what_if_flag(app, what_if);
    workload.add_to(app);
    app.add_option("--config", file, "Run config (JSON file); flags override it");
    app.add_option("--engine", engine,
                   "Simulation engine; default " + default_engine +
                       ". A simulation by simgrid is stopped after " +
                       std::to_string(static_cast<int>(default_simgrid_seconds)) +
                       " s, or OVERLAP_SIMGRID_SECONDS in the environment");
    app.add_option("--seeds", seeds,
                   "Number of simulations if the machine leaves the order of DMA copies open; each simulates "
                   "another order, and the result has their median, p10 and p90; default " +
                       std::to_string(default_seeds))
        ->check(CLI::Range(1, most_seeds));
    app.add_option("--cost-model", cost_models, "Cost model instead of the default for its kind; repeatable")
        ->take_all();
    app.add_option("--without", without,
                   "Effects to switch off: host, contention, launch, packing, decomposition")
        ->delimiter(',');
    add_host_flags(app, host, steady);
}

}  // namespace overlap
