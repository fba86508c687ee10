#include "sim/commands/workload_flags.hpp"

#include <spdlog/spdlog.h>

#include "sim/chakra/chakra_workload.hpp"
#include "sim/commands/sizes.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {
namespace {

/// The pair that the flags change: the workload's own, or a plain all-gather before a bf16 GEMM.
Json changed_workload(const WorkloadFlags& flags, const RunConfig& config, const ConfigFolder& folder) {
    ConfigFile file{config.workload, config.origin + ": /workload"};
    if (file.json.is_string()) {
        file = read_config_file(folder.find("workloads", file.json.get<std::string>()), "workload");
        require_kind(file.json, file.name, FileKind::workload);
    }
    ConfigObject given = file.view();
    if (given.has("operators"))
        throw UserError(file.name +
                        ": lists operators, which --gemm, --dtype, --collective, --order and --shard-dim "
                        "can't change");
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
    app.add_option("--order", order, "collective_first, gemm_first or independent");
    app.add_option("--shard-dim", shard_dim, "m, or k if the tokens are in K");
}

void WorkloadFlags::apply(RunConfig& config, const ConfigFolder& folder) const {
    if (!workload.empty()) config.workload = workload;
    if (!workload.empty() && is_chakra_trace(workload))
        for (const std::string& note : read_chakra(workload).notes) spdlog::warn("{}: {}", workload, note);
    if (!(gemm + dtype + collective + order + shard_dim).empty())
        config.workload = changed_workload(*this, config, folder);
}

}  // namespace overlap
