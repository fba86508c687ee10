#include "sim/run/resolver.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "models/gemm_model.hpp"
#include "sim/chakra/chakra_workload.hpp"
#include "sim/core/available_memory.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/shown.hpp"
#include "sim/engine/engine.hpp"
#include "sim/pricing/effects.hpp"
#include "sim/run/alike_ranks.hpp"
#include "sim/run/budget.hpp"
#include "sim/run/experiment.hpp"
#include "sim/run/list_plan.hpp"
#include "sim/run/steady.hpp"
#include "sim/schedules/operator_list.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_launch.hpp"

namespace overlap {

Seconds multiplying_time(const Workload& workload, const Calibration& calibration) {
    Seconds sum;
    for (const GemmShape& gemm : workload.gemms())
        sum += estimate_gemm(gemm, calibration.gemm_for(gemm.dtype)).body;
    return sum;
}

namespace {

/// Refuses a pair whose operands exceed the memory of one GPU.
void require_memory(const Workload& workload, const DeviceSpec& device, const std::string& origin) {
    const Pair* pair = workload.pair();
    if (pair == nullptr) return;
    const GemmShape& gemm = pair->gemm;
    const Bytes needed = matrix_size(gemm.m, gemm.k, gemm.dtype) + matrix_size(gemm.k, gemm.n, gemm.dtype) +
                         matrix_size(gemm.m, gemm.n, output_type(gemm.dtype));
    if (needed <= device.hbm_capacity) return;
    throw UserError(origin + ": /workload/gemm: the operands of " + shape_name(gemm) + " take " +
                    std::to_string(std::llround(needed.si() * 1e-9)) + " GB, but " + device.name + " has " +
                    std::to_string(std::llround(device.hbm_capacity.si() * 1e-9)) + " GB of HBM");
}

/// Refuses a workload for another number of GPUs than the topology has.
void require_ranks(const Workload& workload, int gpus, const std::string& origin) {
    const auto fail = [&](const std::string& what) {
        throw UserError(origin + ": /workload: " + what + ", but the topology has " + std::to_string(gpus) +
                        " GPUs");
    };
    if (workload.ranks > 0 && workload.ranks != gpus)
        fail("is for " + std::to_string(workload.ranks) + " GPUs");
    if (workload.pair() != nullptr) return;
    for (const Operator& op : std::get<std::vector<Operator>>(workload.content)) {
        std::int64_t last = op.ranks.empty() ? 0 : op.ranks.back();
        if (const auto* send = std::get_if<SendWork>(&op.work))
            for (const auto& side : {send->from, send->to})
                last = std::max(last, *std::ranges::max_element(side));
        if (last >= gpus) fail(in_quotes(op.name) + " names rank " + std::to_string(last));
    }
}

/// Whether the workload is a list of a trace, which has what its own host did.
bool records_host(const Workload& workload) {
    const auto* operators = std::get_if<std::vector<Operator>>(&workload.content);
    return operators != nullptr && std::ranges::any_of(*operators, [](const Operator& op) {
               return op.recorded.gap.has_value() || op.recorded.calls_host();
           });
}

/// Leaves out when the host of a recording enqueued, because another one does.
void enqueue_anew(Workload& workload) {
    auto* operators = std::get_if<std::vector<Operator>>(&workload.content);
    if (operators == nullptr) return;
    for (Operator& op : *operators) op.recorded = {.time = op.recorded.time};
}

bool changes_gemms(const Host& host) {
    return host.gemm_saved > Seconds() || host.gemm_speed < 1;
}

/// Prices GEMMs as programs of `host` run them. They were measured on a stream, with even operands; measured times
/// change as the model's do.
void run_gemms_from(const Host& host, Machine& machine) {
    for (auto& [dtype, gemm] : machine.calibration.gemm) {
        machine.calibration.measured_gemm.emplace(dtype, gemm);
        gemm.peak_rate = host.gemm_speed * gemm.peak_rate;
        if (host.gemm_saved > Seconds())
            gemm.launch =
                std::max(gemm.launch - host.gemm_saved - machine.topology.device().launch->kernel, Seconds());
    }
}

/// Throws UserError if a config lacks a value without default.
void require_named(const RunConfig& config) {
    const auto required = [&](const std::string& value, const std::string& key, const std::string& example) {
        if (value.empty())
            throw UserError(config.origin + ": /" + key + ": is missing (for instance " + example +
                            "; see sim list)");
    };
    required(config.topology, "topology", "ring_8");
    if (!config.has_plan()) required(config.schedule, "schedule", "ring_chunked");
}

bool is_possible(DmaCommands commands, const Scenario& scenario) {
    const bool writes = commands == DmaCommands::broadcast || commands == DmaCommands::swap;
    if (writes && scenario.params.transfers.direction == Direction::pull) return false;
    const std::vector<CollectiveKind> kinds = collectives_of(scenario.workload);
    return std::ranges::all_of(kinds, [&](CollectiveKind kind) { return can_command(commands, kind); });
}

/// The scenario's transfer options with the DMA commands of the shortest run, for a scenario with dma_commands
/// `best`. On a tie the first of copy, one_stream, broadcast, swap, back_to_back. Only commands that can do every
/// collective of the workload are tried; with transfer 'pull' none that must write.
TransferOptions fastest_commands(const Scenario& scenario) {
    constexpr std::array candidates{DmaCommands::copy, DmaCommands::one_stream, DmaCommands::broadcast,
                                    DmaCommands::swap, DmaCommands::back_to_back};
    TransferOptions fastest;
    Seconds shortest(1e300);
    for (const DmaCommands commands : candidates) {
        if (!is_possible(commands, scenario)) continue;
        Scenario candidate = scenario;
        candidate.params.transfers.commands = commands;
        const TaskGraph graph = candidate.graph();
        const Seconds makespan = Experiment(candidate, graph).makespan(without(scenario.settings.without));
        if (makespan >= shortest) continue;
        shortest = makespan;
        fastest = candidate.params.transfers;
    }
    return fastest;
}

}  // namespace

bool knows_device(const Host& host, const MachineFiles& machine) {
    for (const auto& value : host.device.items()) {
        std::string pointer = value.key().substr(value.key().find('.'));
        std::ranges::replace(pointer, '.', '/');
        const Json::json_pointer place(pointer);
        if (!machine.device.json.contains(place) &&
            !(machine.calibration && machine.calibration->json.contains(place)))
            return false;
    }
    return true;
}

Workload Resolver::workload(const RunConfig& config) {
    if (config.workload.is_object()) return read_workload({config.workload, config.origin, "/workload"});
    const auto name = config.workload.get<std::string>();
    return *workloads_.get(name, [&] {
        if (const std::string trace = chakra_trace(name, folder_.path_beside(name)); !trace.empty())
            return std::make_shared<const Workload>(read_workload({read_chakra(trace).workload, trace}));
        const ConfigFile file = read_config_file(folder_.find("workloads", name), "workload");
        require_kind(file.json, file.name, FileKind::workload);
        return std::make_shared<const Workload>(read_workload(file.view()));
    });
}

std::shared_ptr<const Host> Resolver::host(const std::string& name) {
    if (name.empty()) return nullptr;
    return hosts_.get(name, [&] { return std::make_shared<const Host>(folder_.host(name)); });
}

std::string Resolver::machine_key(const RunConfig& config) {
    std::string key = config.topology;
    if (config.what_if != Json::object()) key += '\n' + config.what_if.dump();
    if (const auto host = this->host(config.host);
        host != nullptr &&
        (changes_gemms(*host) || !host->device.empty() || host->events == HostEvents::untimed))
        key += '\n' + config.host;
    return key;
}

Resolver::MachinePtr Resolver::machine(const RunConfig& config) {
    return machines_.get(machine_key(config), [&] {
        WhatIf what_if(config.what_if, config.origin);
        const auto host = this->host(config.host);
        if (host != nullptr && !host->device.empty() &&
            knows_device(*host, folder_.machine_files(config.topology, what_if))) {
            Json changes = config.what_if;
            changes.insert(host->device.begin(), host->device.end());
            what_if = WhatIf(changes, config.origin);
        }
        Machine machine = folder_.machine(config.topology, what_if);
        // A host changes what calls and events take. What was measured on the GPUs stays so.
        if (host != nullptr && !host->device.empty())
            machine.evidence =
                folder_.machine(config.topology, WhatIf(config.what_if, config.origin)).evidence;
        if (host != nullptr && changes_gemms(*host)) run_gemms_from(*host, machine);
        machine.untimed_events = host != nullptr && host->events == HostEvents::untimed;
        return std::make_shared<const Machine>(std::move(machine));
    });
}

Resolver::MachinePtr Resolver::smaller_machine(RunConfig config, const Topology& topology) {
    config.what_if.update(topology.smaller());
    try {
        return machine(config);
    } catch (const UserError&) {
        return nullptr;
    }
}

ScheduleParams parameters_of(const ScheduleEntry& schedule, const Json& params, const Workload& workload,
                             const Topology& topology, const std::string& origin) {
    const Json given = with_defaults(schedule, params);
    return schedule.read({given, origin, "/params"}, workload, topology);
}

PlanPtr Resolver::plan_of_text(const std::string& text) {
    return plans_.get(
        text, [&] { return std::make_shared<const Plan>(read_plan(parse_json(text, "plan"), "plan")); });
}

PlanPtr Resolver::plan_of(const RunConfig& config) {
    if (config.read != nullptr || config.plan.is_null()) return config.read;
    const auto kept = [&](Plan plan) {
        plan.given = config.plan;
        return std::make_shared<const Plan>(std::move(plan));
    };
    if (config.plan.is_object()) return kept(read_plan(config.plan, config.origin + ": /plan"));
    const auto name = config.plan.get<std::string>();
    return plans_.get(name, [&] {
        std::error_code ignored;
        const std::filesystem::path beside = folder_.file_beside(name);
        const bool is_here = beside.empty() || std::filesystem::exists(name, ignored);
        return kept(read_plan_file(is_here ? std::filesystem::path(name) : beside));
    });
}

RunConfig Resolver::with_machine(RunConfig config) {
    config.read = plan_of(config);
    if (config.read == nullptr) return config;
    const RunConfig whole = with_plan(config, *config.read);
    config.topology = whole.topology;
    config.what_if = whole.what_if;
    return config;
}

Scenario Resolver::resolve(const RunConfig& given) {
    const PlanPtr planned = plan_of(given);
    const RunConfig config = planned == nullptr ? given : with_plan(given, *planned);
    require_named(config);
    const auto find = [&](const std::string& name) {
        if (planned != nullptr && name == schedule_of_plans()->name) return schedule_of_plans();
        return schedules_.get(name, [&] { return folder_.schedule(name); });
    };
    const SchedulePtr kept = find(config.schedule);
    const ScheduleEntry& schedule = *kept;
    Workload workload =
        planned == nullptr || planned->has_workload() ? this->workload(config) : unknown_work();
    if (workload.pair() != nullptr) require_handled(schedule, workload);
    if (!config.host.empty()) enqueue_anew(workload);

    MachinePtr machine = this->machine(config);
    const Topology& topology = machine->topology;
    if (planned != nullptr) {
        require_fits(*planned, topology);
        require_operators(*planned, workload);
    }
    ScheduleParams params = parameters_of(schedule, config.params, workload, topology, config.origin);
    // Programs have a thread or a process a GPU. In what order hosts enqueue matters where a GPU's engines serve all
    // pulls from it in that order; elsewhere, and between two GPUs, it changes nothing.
    const bool by_default = config.host.empty() && !records_host(workload) &&
                            topology.device().dma->pulls == PullServer::sender && topology.gpus() > 2;
    ListPlan plan = plan_list(config, kept, workload, topology, find);
    require_memory(workload, topology.device(), config.origin);
    require_ranks(workload, topology.gpus(), config.origin);
    make_engine(config.engine);
    CostModels{config.cost_models};
    without(config.without);
    const bool one_order = topology.device().dma->order != QueueOrder::unspecified;
    const int seeds = config.seeds.value_or(one_order ? 1 : default_seeds);
    const Seconds multiplying = workload.gemms().empty() && planned != nullptr
                                    ? multiplying_time(planned->graph, machine->calibration)
                                    : multiplying_time(workload, machine->calibration);
    Scenario scenario{sustaining(machine, machine_key(config), multiplying),
                      std::move(workload),
                      kept,
                      std::move(params),
                      {config.engine, seeds, config.cost_models, config.without},
                      {config.topology, config.what_if},
                      nullptr,
                      std::move(plan.pairs),
                      std::move(plan.whole),
                      host(by_default ? default_host : config.host),
                      config.repeat};
    scenario.plan = planned;
    if (scenario.host != nullptr && scenario.host->hardware_queues > 0 && scenario.runs_by_data())
        throw UserError(
            config.origin + ": /host: " + in_quotes(scenario.host->name) +
            " has hardware_queues, which run what a program enqueued in its order, but the order of list " +
            in_quotes(scenario.workload.name) + " is data (allowed: \"order\": \"program\" in the list)");
    if (config.repeat == Repeat::steady) require_power_constants(*machine, config.origin);
    if (planned == nullptr && may_build_representatives(scenario))
        if (const MachinePtr small = smaller_machine(config, topology)) find_alike_ranks(scenario, small);
    if (!config.allow_large) {
        const Bytes available = available_memory() / at_once_;
        require_affordable(budget_of(scenario, available), available);
    }
    if (planned == nullptr && scenario.params.transfers.commands == DmaCommands::best)
        scenario.params.transfers = fastest_commands(scenario);
    return scenario;
}

Scenario Resolver::resolve_for_numbers(const RunConfig& config) {
    Scenario scenario = resolve(config);
    if (scenario.params.transfers.alike) return scenario;
    if (scenario.plan != nullptr) return of_representatives(std::move(scenario), machine_key(config));
    const std::string key = alikeness_key(scenario);
    if (key.empty()) return scenario;
    scenario.params.transfers.alike = alike_.get(machine_key(config) + '\n' + config.schedule + '\n' + key,
                                                 [&] { return alike_ranks_of_few(scenario); });
    return scenario;
}

Scenario Resolver::of_representatives(Scenario scenario, const std::string& machine) {
    if (!may_simulate_representatives(scenario)) return scenario;
    const Json key{machine, reinterpret_cast<std::uintptr_t>(scenario.plan.get()),
                   scenario.settings.cost_models, scenario.settings.without};
    // The value holds the plan, so that no other one has its address.
    const AlikeTasks alike = alike_tasks_.get(key.dump(), [&] { return alike_tasks(scenario); });
    scenario.params.transfers.alike = alike.rotations;
    scenario.representatives = alike.representatives;
    return scenario;
}

Resolver::MachinePtr Resolver::sustaining(const MachinePtr& machine, const std::string& key,
                                          Seconds sustained) {
    const std::string longer_key = key + '\n' + std::to_string(std::bit_cast<std::uint64_t>(sustained.si()));
    return sustained_.get(longer_key, [&] {
        auto copy = std::make_shared<Machine>(*machine);
        copy->sustained = sustained;
        return MachinePtr(std::move(copy));
    });
}

Scenario resolve(const RunConfig& config, const ConfigFolder& folder) {
    return Resolver(folder).resolve(config);
}

}  // namespace overlap
