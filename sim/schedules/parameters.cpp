#include "sim/schedules/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/collectives/collective_algorithm.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/islands.hpp"

namespace overlap {
namespace {

constexpr int most_chunks = 65536;

/// Compute units a copy kernel takes by default: the device's own, less where all transfer streams of a GPU
/// together would take more than half of it.
int default_cus(const Topology& topology, int streams) {
    const DeviceSpec& device = topology.device();
    const int half = static_cast<int>(device.compute_units / 2) / streams;
    return std::clamp(device.copy_kernel->default_cus, 1, std::max(half, 1));
}

/// Refuses what the machine and the other parameters leave no room for; which collectives commands can do is
/// seen with the workload (can_command).
void require_dma_commands(ConfigObject& given, const ScheduleParams& params, const Topology& topology) {
    const TransferOptions& transfers = params.transfers;
    const bool other = transfers.commands != DmaCommands::copy;
    const bool copies = !other || transfers.commands == DmaCommands::one_stream;
    if (!other && !transfers.prelaunch) return;
    const std::string key = other ? "dma_commands" : "prelaunch";
    const bool kernels = transfers.agent == Agent::cu;
    if (kernels && other) given.fail(key, "needs agent 'dma' (kernels have no DMA commands)");
    if (kernels && params.algorithm != "library") return;
    const bool batch = params.algorithm == "zero_cta" && transfers.commands == DmaCommands::one_stream;
    if (params.algorithm != "direct" && !batch)
        given.fail(key, "needs algorithm 'direct', not '" + params.algorithm + "'");
    if (topology.nodes() > 1) given.fail(key, "needs GPUs of one node (between nodes NICs move the data)");
    if ((!copies || transfers.prelaunch) && !topology.device().dma->commands)
        given.fail(key,
                   "has no figures for device " + topology.device().name +
                       ", whose engines are only known to copy (see dma/commands in sim explain DEVICE)");
    const bool pushed =
        transfers.commands == DmaCommands::broadcast || transfers.commands == DmaCommands::swap;
    if (pushed && transfers.direction == Direction::pull)
        given.fail("transfer", "is 'pull', but dma_commands '" +
                                   dma_commands_names[static_cast<std::size_t>(transfers.commands)] +
                                   "' writes to other GPUs (allowed: push)");
}

/// What defaults and limits follow from, besides the parameters before.
struct Context {
    const Topology& topology;
    bool collective_first;
    int streams;  ///< transfer streams of a GPU

    const DeviceSpec& device() const { return topology.device(); }
    int units() const { return static_cast<int>(device().compute_units); }
};

/// One parameter. `settle` sets a default that the context decides, `read` takes the value that is given.
struct Parameter : ParameterInfo {
    using Step = std::function<void(ConfigObject& given, ScheduleParams&, const Context&)>;

    Step read;
    std::function<Json(const ScheduleParams&)> write;
    Step settle = {};
    /// Whether results have it.
    std::function<bool(const ScheduleParams&)> shown = [](const ScheduleParams&) { return true; };

    Parameter settled(Step step, const std::string& text) && {
        settle = std::move(step);
        by_default = text;
        return std::move(*this);
    }
    Parameter shown_if(std::function<bool(const ScheduleParams&)> condition) && {
        shown = std::move(condition);
        return std::move(*this);
    }
    /// A choice of copy kernels only.
    Parameter of_copy_kernels() && {
        read = [inner = read, key = name](ConfigObject& given, ScheduleParams& params, const Context& at) {
            if (params.transfers.agent == Agent::dma)
                given.fail(key, "needs agent 'cu' (DMA engines take no compute units)");
            inner(given, params, at);
        };
        return std::move(*this).shown_if(
            [](const ScheduleParams& params) { return params.transfers.agent == Agent::cu; });
    }
};

/// An enum whose enumerators are called `names`; `member` gives the place of its value in ScheduleParams.
template <class Member>
Parameter choice(const std::string& name, std::span<const std::string> names, Member member,
                 const std::string& meaning) {
    const auto name_in = [=](const ScheduleParams& params) {
        return names[static_cast<std::size_t>(member(params))];
    };
    const auto read = [=](ConfigObject& given, ScheduleParams& params, const Context&) {
        auto& value = member(params);
        value = static_cast<std::remove_reference_t<decltype(value)>>(given.choice(name, names));
    };
    return {{name, meaning, joined(names), name_in(ScheduleParams()), {{"enum", names}}},
            read,
            [=](const ScheduleParams& params) -> Json { return name_in(params); }};
}

template <class Member>
Parameter flag(const std::string& name, Member member, const std::string& meaning) {
    const auto write = [=](const ScheduleParams& params) -> Json { return member(params); };
    const auto read = [=](ConfigObject& given, ScheduleParams& params, const Context&) {
        member(params) = given.boolean(name);
    };
    return {
        {name, meaning, "true, false", write(ScheduleParams()).dump(), {{"type", "boolean"}}}, read, write};
}

/// A whole number from 1 to `most`.
template <class Member>
Parameter count(const std::string& name, Member member, const std::string& allowed,
                const std::string& meaning, std::function<int(const Context&)> most) {
    const auto read = [=](ConfigObject& given, ScheduleParams& params, const Context& at) {
        member(params) = static_cast<int>(given.integer(name, 1, most(at)));
    };
    return {{name, meaning, allowed, "", {{"type", "integer"}, {"minimum", 1}}},
            read,
            [=](const ScheduleParams& params) -> Json { return member(params); }};
}

int most_copy_cus(const Context& at) {
    return static_cast<int>(at.device().compute_units - 1) / at.streams;
}

/// DMA engines that feed a GEMM pull, unless their commands write to other GPUs.
void settle_direction(ConfigObject&, ScheduleParams& params, const Context& at) {
    TransferOptions& transfers = params.transfers;
    const bool either =
        transfers.commands == DmaCommands::copy || transfers.commands == DmaCommands::back_to_back;
    const bool pull = transfers.agent == Agent::dma && at.collective_first && either;
    transfers.direction = pull ? Direction::pull : Direction::push;
}

void settle_copy_cus(ConfigObject& given, ScheduleParams& params, const Context& at) {
    if (params.transfers.agent == Agent::dma) return;
    params.transfers.cus = default_cus(at.topology, at.streams);
    params.transfers.default_cus = true;
    if (most_copy_cus(at) < 1)
        given.fail("agent", "is 'cu', but " + std::to_string(at.streams) + " transfers at once leave " +
                                at.device().name + " no compute unit for GEMMs (allowed: dma)");
}

void read_algorithm(ConfigObject& given, ScheduleParams& params, const Context& at) {
    const std::vector<std::string> names = collective_algorithm_names();
    params.algorithm = names[given.choice("algorithm", names)];
    if (params.algorithm != "zero_cta") return;
    if (params.transfers.agent == Agent::cu)
        given.fail("algorithm", "is 'zero_cta', which needs agent 'dma': it takes no compute units");
    if (at.topology.nodes() > 1)
        given.fail("algorithm", "is 'zero_cta', which is known for the GPUs of one node only");
    if (given.has("transfer") && params.transfers.direction == Direction::pull)
        given.fail("transfer", "is 'pull', but the senders of algorithm 'zero_cta' write (allowed: push)");
    params.transfers.direction = Direction::push;
    // A batch is one call on one stream: on a single engine its copies run one after another.
    if (!given.has("dma_commands") && at.device().dma->peer_engines == 1)
        params.transfers.commands = DmaCommands::one_stream;
}

void read_channels(ConfigObject& given, ScheduleParams& params, const Context& at) {
    if (params.algorithm != "library") given.fail("channels", "needs algorithm 'library'");
    const auto channels = static_cast<int>(at.device().collective_library->channels);
    if (channels < 1)
        given.fail("channels", "needs a library that was measured, which " + at.device().name + " lacks");
    params.transfers.channels = static_cast<int>(given.integer("channels", 1, channels));
}

/// A number, or "rest": compute units that no copy kernel holds while all streams have one.
void read_gemm_cus(ConfigObject& given, ScheduleParams& params, const Context& at) {
    if (!given.raw("gemm_cus").is_string()) {
        params.gemm_cus = static_cast<int>(given.integer("gemm_cus", 1, at.units()));
        return;
    }
    static const std::array<std::string, 1> rest{"rest"};
    given.choice("gemm_cus", rest);
    if (params.transfers.agent == Agent::dma)
        given.fail("gemm_cus", "is 'rest', which needs agent 'cu' (DMA engines take no compute units)");
    params.gemm_cus = static_cast<int>(at.device().compute_units) - at.streams * params.transfers.cus;
}

/// Without fewer units for GEMMs there is no mask.
void read_cu_mask(ConfigObject& given, ScheduleParams& params, const Context& at) {
    params.cu_mask = static_cast<CuMask>(given.choice("cu_mask", cu_mask_names));
    if (params.gemm_cus == 0 || params.gemm_cus == at.units())
        given.fail("cu_mask", "needs gemm_cus, with fewer than all " + std::to_string(at.units()) + " units");
}

std::vector<Parameter> make_parameters() {
    // clang-format off
    const auto units = [](const Context& at) { return at.units(); };
    Parameter algorithm{{"algorithm", "algorithm of a collective that is not cut", joined(collective_algorithm_names()), "", {{"enum", collective_algorithm_names()}}},
        read_algorithm, [](const ScheduleParams& p) -> Json { return p.algorithm; }};
    Parameter channels = count("channels", [](auto& p) -> auto& { return p.transfers.channels; }, "1 to the library's channels",
        "compute units of a library collective's kernel (algorithm library only)", units);
    channels.read = read_channels;
    channels.by_default = "the library's channels";
    Parameter gemm_cus = count("gemm_cus", [](auto& p) -> auto& { return p.gemm_cus; }, "1 to compute units, rest",
        "compute units that GEMMs may use: a mask, the others are left to communication; rest: those that copy kernels of all streams do not hold (agent cu only)", units);
    gemm_cus.read = read_gemm_cus;
    Parameter copy_cus = count("copy_cus", [](auto& p) -> auto& { return p.transfers.cus; }, "1 to compute units / transfer streams",
        "compute units held by each transfer (agent cu only)", most_copy_cus);
    copy_cus.read = [read = copy_cus.read](ConfigObject& given, ScheduleParams& params, const Context& at) {
        read(given, params, at);
        // A result's config has the default; it means the same when it is given.
        params.transfers.default_cus = params.transfers.cus == default_cus(at.topology, at.streams);
    };
    Parameter cu_mask = choice("cu_mask", cu_mask_names, [](auto& p) -> auto& { return p.cu_mask; },
        "which units gemm_cus leaves to GEMMs: as many of each shader engine, or those of low bits of ROC_GLOBAL_CU_MASK in a block for each die, which leaves engines unequal numbers");
    cu_mask.read = read_cu_mask;
    gemm_cus.schema = {{"oneOf", {gemm_cus.schema, {{"enum", {"rest"}}}}}};
    return {
        count("chunks", [](auto& p) -> auto& { return p.chunks; }, "1 to the length of the dimension that is cut",
            "pieces a shard is cut into", [](const Context&) { return most_chunks; })
            .settled({}, "number of GPUs in a node"),
        choice("agent", agent_names, [](auto& p) -> auto& { return p.transfers.agent; },
            "who moves transfers: a DMA engine, or a kernel on compute units"),
        choice("order", peer_order_names, [](auto& p) -> auto& { return p.transfers.order; },
            "order of peers: rotation is r+1, r+2, ... mod P, ascending is 0, 1, ..."),
        choice("dma_commands", dma_commands_names, [](auto& p) -> auto& { return p.transfers.commands; },
            "DMA commands of a collective that is not cut (agent dma, algorithm direct, one node): a copy for each peer, each by its own engine; the same copies "
            "on one stream a GPU, one after another (push unless said); "
            "broadcasts to two peers (all_gather, push); swaps in place (all_to_all, push); all copies by one engine with one completion; or the fastest of these")
            .shown_if([](const ScheduleParams& p) { return p.transfers.agent == Agent::dma; }),
        flag("prelaunch", [](auto& p) -> auto& { return p.transfers.prelaunch; },
            "dma: commands are queued in advance and start on a write to memory; cu: a running kernel starts the copy when it sees a flag")
            .shown_if([](const ScheduleParams& p) { return p.transfers.agent == Agent::dma || p.transfers.prelaunch; }),
        choice("transfer", direction_names, [](auto& p) -> auto& { return p.transfers.direction; }, "which end executes a transfer")
            .settled(settle_direction, "pull by dma that feeds a GEMM, else push"),
        std::move(copy_cus).settled(settle_copy_cus, "the device's default_cus, less where all transfers of a GPU together would take more than half of it; in a list, for each collective by its own group").of_copy_kernels(),
        choice("copy_priority", priority_names, [](auto& p) -> auto& { return p.transfers.priority; },
            "priority of the streams of copy kernels and library collectives (agent cu only)").of_copy_kernels(),
        flag("scatter", [](auto& p) -> auto& { return p.scatter; }, "charge the copies that pack stages and put fused rows in their place"),
        choice("gemm", gemm_grain_names, [](auto& p) -> auto& { return p.gemm; }, "grain of the GEMMs of ring_chunked"),
        choice("comm_shape", comm_shape_names, [](auto& p) -> auto& { return p.point.shape; },
            "cut shards along the sharded dimension, or along the other one (strided)"),
        choice("uniformity", uniformity_names, [](auto& p) -> auto& { return p.point.uniformity; }, "cut the own shard like the others, or take it whole"),
        choice("granularity", granularity_names, [](auto& p) -> auto& { return p.point.granularity; }, "one GEMM a step, or one a piece"),
        std::move(algorithm).settled([](ConfigObject&, ScheduleParams& p, const Context& at) {
                const bool by_nics = at.topology.nodes() > 1 && at.topology.has_network();
                const bool by_islands = gains_by_crossing_once(at.topology, p.transfers.agent == Agent::dma);
                p.algorithm = by_nics || by_islands ? "hierarchical" : "direct";
            }, "hierarchical where NICs join nodes, or where crossing slow links between islands of a node once saves time; else direct"),
        std::move(channels).shown_if([](const ScheduleParams& p) { return p.transfers.channels > 0; }),
        std::move(gemm_cus).settled([](ConfigObject&, ScheduleParams& p, const Context& at) { p.gemm_cus = at.units(); }, "compute units"),
        std::move(cu_mask).shown_if([](const ScheduleParams& p) { return p.cu_mask != CuMask::even; })};
    // clang-format on
}

const std::vector<Parameter>& parameters() {
    static const std::vector<Parameter> table = make_parameters();
    return table;
}

}  // namespace

TransferOptions transfers_in_group(TransferOptions options, const Topology& group) {
    if (options.default_cus)
        options.cus = default_cus(group, options.single_stream ? 1 : std::max(group.gpus() - 1, 1));
    return options;
}

std::span<const ParameterInfo> schedule_parameters() {
    static const std::vector<ParameterInfo> infos(parameters().begin(), parameters().end());
    return infos;
}

Json parameters_schema() {
    Json properties;
    for (const ParameterInfo& info : schedule_parameters()) {
        Json& schema =
            properties[info.name] = {{"description", info.meaning + "; default: " + info.by_default}};
        schema.update(info.schema);
    }
    return {{"description", "Parameters of the schedule; it takes those that 'sim explain NAME' shows."},
            {"type", "object"},
            {"additionalProperties", false},
            {"properties", properties}};
}

ScheduleParams read_parameters(ConfigObject given, const ParameterUser& user, const Topology& topology) {
    const auto is_accepted = [&](const std::string& name) { return contains(user.accepted, name); };
    for (const std::string& key : given.keys())
        if (!is_accepted(key))
            given.fail(key, "is no parameter of this schedule" + suggestion(key, user.accepted));

    const Context context{topology, user.collective_first,
                          user.single_stream ? 1 : std::max(topology.gpus() - 1, 1)};
    ScheduleParams params;
    params.transfers.single_stream = user.single_stream;
    params.chunks = is_accepted("chunks") ? topology.gpus_per_node() : 1;
    for (const Parameter& parameter : parameters()) {
        if (parameter.settle) parameter.settle(given, params, context);
        if (given.has(parameter.name)) parameter.read(given, params, context);
    }
    require_dma_commands(given, params, topology);
    given.finish();
    return params;
}

Json to_json(const ScheduleParams& params, std::span<const std::string> accepted) {
    Json json = Json::object();
    for (const std::string& name : accepted)
        for (const Parameter& parameter : parameters())
            if (parameter.name == name && parameter.shown(params)) json[name] = parameter.write(params);
    return json;
}

}  // namespace overlap
