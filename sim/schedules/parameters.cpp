#include "sim/schedules/parameters.hpp"

#include <algorithm>
#include <cmath>

#include "sim/collectives/collective_algorithm.hpp"

namespace overlap {
namespace {

constexpr int most_chunks = 65536;

/// Compute units a copy kernel takes by default: the device's own, less where all transfer streams of a GPU
/// together would take more than half of it.
int default_cus(const Topology& topology, int streams) {
    const DeviceSpec& device = topology.device();
    const int half = static_cast<int>(device.compute_units / 2) / streams;
    return std::clamp(device.copy_kernel.default_cus, 1, std::max(half, 1));
}

/// Compute units that no copy kernel holds while all streams have one.
int rest_of_units(ConfigObject& given, const TransferOptions& transfers, int streams,
                  const DeviceSpec& device) {
    static const std::array<std::string, 1> rest{"rest"};
    given.choice("gemm_cus", rest);
    if (transfers.agent == Agent::dma)
        given.fail("gemm_cus", "is 'rest', which needs agent 'cu' (DMA engines take no compute units)");
    const double each = std::max(1.0, std::round(transfers.cus * device.copy_kernel.units_per_block));
    return static_cast<int>(device.compute_units - streams * each);
}

/// Refuses what the machine and the other parameters leave no room for; which collectives commands can do is
/// seen with the workload (can_command).
void require_dma_commands(ConfigObject& given, const ScheduleParams& params, const Topology& topology) {
    const TransferOptions& transfers = params.transfers;
    const bool other = transfers.commands != DmaCommands::copy;
    if (!other && !transfers.prelaunch) return;
    const std::string key = other ? "dma_commands" : "prelaunch";
    const bool kernels = transfers.agent == Agent::cu;
    if (kernels && other) given.fail(key, "needs agent 'dma' (kernels have no DMA commands)");
    if (kernels && params.algorithm != "library") return;
    if (params.algorithm != "direct")
        given.fail(key, "needs algorithm 'direct', not '" + params.algorithm + "'");
    if (topology.nodes() > 1) given.fail(key, "needs GPUs of one node (between nodes NICs move the data)");
    if (!topology.device().dma.commands)
        given.fail(key, "has no figures for device " + topology.device().name +
                            ", whose engines are only known to copy (see sim explain mi300x, dma/commands)");
    const bool pushed =
        transfers.commands == DmaCommands::broadcast || transfers.commands == DmaCommands::swap;
    if (pushed && transfers.direction == Direction::pull)
        given.fail("transfer", "is 'pull', but dma_commands '" +
                                   dma_commands_names[static_cast<std::size_t>(transfers.commands)] +
                                   "' writes to other GPUs (allowed: push)");
}

}  // namespace

std::span<const ParameterInfo> schedule_parameters() {
    static const std::array<ParameterInfo, 16> table{{
        {"chunks", "1 to the length of the dimension that is cut", "number of GPUs in a node",
         "pieces a shard is cut into"},
        {"agent", "dma, cu", "dma", "who moves transfers: a DMA engine, or a kernel on compute units"},
        {"transfer", "pull, push", "pull by dma that feeds a GEMM, else push",
         "which end executes a transfer"},
        {"copy_cus", "1 to compute units / transfer streams", "the device's default_cus",
         "compute units held by each transfer (agent cu only)"},
        {"copy_priority", "normal, high", "normal",
         "priority of the streams of copy kernels and library collectives (agent cu only)"},
        {"channels", "1 to the library's channels", "the library's channels",
         "compute units of a library collective's kernel (algorithm library only)"},
        {"gemm_cus", "1 to compute units, rest", "compute units",
         "compute units that GEMMs may use: a mask, the others are left to communication; rest: those that "
         "copy kernels of all streams do not hold (agent cu only)"},
        {"order", "rotation, ascending", "rotation", "order of peers: r+1, r+2, ... mod P, or 0, 1, ..."},
        {"scatter", "true, false", "true",
         "charge the copies that pack stages and put fused rows in their place"},
        {"gemm", "shard, chunk", "shard", "grain of the GEMMs of ring_chunked"},
        {"comm_shape", "1d, 2d", "1d",
         "cut shards along the sharded dimension, or along the other one (strided)"},
        {"uniformity", "uniform, hetero", "hetero", "cut the own shard like the others, or take it whole"},
        {"granularity", "fused, unfused", "fused", "one GEMM a step, or one a piece"},
        {"algorithm", "direct, ring, hierarchical, library",
         "hierarchical where NICs join nodes, else direct", "algorithm of a collective that is not cut"},
        {"dma_commands", "copy, broadcast, swap, back_to_back, auto", "copy",
         "DMA commands of such a collective (agent dma, algorithm direct, one node): a copy for each peer, "
         "each by its own engine; broadcasts to two peers (all_gather, push); swaps in place (all_to_all, "
         "push); all copies by one engine with one completion; or the fastest of these"},
        {"prelaunch", "true, false", "false",
         "its DMA commands were queued before, behind a poll that a write to memory ends; agent cu: kernels "
         "that run already, as parts of a fused kernel do, see a flag instead of being launched"},
    }};
    return table;
}

ScheduleParams read_parameters(ConfigObject given, std::span<const std::string> accepted,
                               bool collective_first, bool single_stream, const Topology& topology) {
    const int ranks = topology.gpus();
    const auto is_accepted = [&](const std::string& name) {
        return std::find(accepted.begin(), accepted.end(), name) != accepted.end();
    };
    for (const std::string& key : given.keys())
        if (!is_accepted(key))
            given.fail(key, "is no parameter of this schedule" + suggestion(key, accepted));

    ScheduleParams params;
    const auto choice = [&](const std::string& key, auto& value, std::span<const std::string> names) {
        using Enum = std::remove_reference_t<decltype(value)>;
        if (given.has(key)) value = static_cast<Enum>(given.choice(key, names));
    };
    params.chunks = is_accepted("chunks") ? topology.gpus_per_node() : 1;
    if (given.has("chunks")) params.chunks = static_cast<int>(given.integer("chunks", 1, most_chunks));

    TransferOptions& transfers = params.transfers;
    transfers.single_stream = single_stream;
    choice("agent", transfers.agent, agent_names);
    choice("order", transfers.order, peer_order_names);
    choice("dma_commands", transfers.commands, dma_commands_names);
    if (given.has("prelaunch")) transfers.prelaunch = given.boolean("prelaunch");
    const bool either =
        transfers.commands == DmaCommands::copy || transfers.commands == DmaCommands::back_to_back;
    const bool pull = transfers.agent == Agent::dma && collective_first && either;
    transfers.direction = pull ? Direction::pull : Direction::push;
    choice("transfer", transfers.direction, direction_names);

    const int streams = single_stream ? 1 : std::max(ranks - 1, 1);
    const int most_cus = static_cast<int>(topology.device().compute_units - 1) / streams;
    if (transfers.agent == Agent::cu) {
        transfers.cus = default_cus(topology, streams);
        if (most_cus < 1)
            given.fail("agent", "is 'cu', but " + std::to_string(streams) + " transfers at once leave " +
                                    topology.device().name + " no compute unit for GEMMs (allowed: dma)");
        if (given.has("copy_cus")) transfers.cus = static_cast<int>(given.integer("copy_cus", 1, most_cus));
        choice("copy_priority", transfers.priority, priority_names);
    }
    for (const std::string key : {"copy_cus", "copy_priority"})
        if (transfers.agent == Agent::dma && given.has(key))
            given.fail(key, "needs agent 'cu' (DMA engines take no compute units)");

    if (given.has("scatter")) params.scatter = given.boolean("scatter");
    choice("gemm", params.gemm, gemm_grain_names);
    choice("comm_shape", params.comm_shape, comm_shape_names);
    choice("uniformity", params.uniformity, uniformity_names);
    choice("granularity", params.granularity, granularity_names);
    params.algorithm = topology.nodes() > 1 && topology.has_network() ? "hierarchical" : "direct";
    if (given.has("algorithm")) {
        const std::vector<std::string> names = collective_algorithm_names();
        params.algorithm = names[given.choice("algorithm", names)];
    }
    require_dma_commands(given, params, topology);
    if (given.has("channels")) {
        if (params.algorithm != "library") given.fail("channels", "needs algorithm 'library'");
        const auto channels = static_cast<int>(topology.device().collective_library.channels);
        if (channels < 1)
            given.fail("channels",
                       "needs a library that was measured, which " + topology.device().name + " lacks");
        transfers.channels = static_cast<int>(given.integer("channels", 1, channels));
    }
    params.gemm_cus = static_cast<int>(topology.device().compute_units);
    if (given.has("gemm_cus")) {
        if (given.raw("gemm_cus").is_string())
            params.gemm_cus = rest_of_units(given, transfers, streams, topology.device());
        else
            params.gemm_cus = static_cast<int>(given.integer("gemm_cus", 1, params.gemm_cus));
    }
    given.finish();
    return params;
}

Json to_json(const ScheduleParams& params, std::span<const std::string> accepted) {
    Json json = Json::object();
    const auto named = [](auto value, const auto& names) { return names[static_cast<std::size_t>(value)]; };
    for (const std::string& name : accepted) {
        if (name == "chunks") json[name] = params.chunks;
        if (name == "agent") json[name] = named(params.transfers.agent, agent_names);
        if (name == "transfer") json[name] = named(params.transfers.direction, direction_names);
        if (name == "copy_cus" && params.transfers.agent == Agent::cu) json[name] = params.transfers.cus;
        if (name == "copy_priority" && params.transfers.agent == Agent::cu)
            json[name] = named(params.transfers.priority, priority_names);
        if (name == "channels" && params.transfers.channels > 0) json[name] = params.transfers.channels;
        if (name == "gemm_cus") json[name] = params.gemm_cus;
        if (name == "order") json[name] = named(params.transfers.order, peer_order_names);
        if (name == "scatter") json[name] = params.scatter;
        if (name == "gemm") json[name] = named(params.gemm, gemm_grain_names);
        if (name == "comm_shape") json[name] = named(params.comm_shape, comm_shape_names);
        if (name == "uniformity") json[name] = named(params.uniformity, uniformity_names);
        if (name == "granularity") json[name] = named(params.granularity, granularity_names);
        if (name == "algorithm") json[name] = params.algorithm;
        if (name == "dma_commands" && params.transfers.agent == Agent::dma)
            json[name] = named(params.transfers.commands, dma_commands_names);
        if (name == "prelaunch" && (params.transfers.agent == Agent::dma || params.transfers.prelaunch))
            json[name] = params.transfers.prelaunch;
    }
    return json;
}

}  // namespace overlap
