#include "sim/schedules/host.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "sim/core/file_version.hpp"
#include "sim/core/ranges.hpp"
#include "sim/topology/device_schema.hpp"

namespace overlap {
namespace {

/// "launch.kernel_us" and all other values in the groups of a device's file.
std::vector<std::string> device_values() {
    std::vector<std::string> values;
    const Json schema = device_schema();
    for (const auto& group : schema.at("properties").items())
        if (group.value().contains("properties"))
            for (const auto& value : group.value().at("properties").items())
                values.push_back(group.key() + "." + value.key());
    return values;
}

/// The tasks of each GPU in the order of their numbers.
std::vector<std::vector<TaskId>> by_gpu(const TaskGraph& graph) {
    std::vector<std::vector<TaskId>> tasks(static_cast<std::size_t>(graph.gpus()));
    for (TaskId id = 0; id < graph.size(); ++id) tasks[static_cast<std::size_t>(graph[id].gpu)].push_back(id);
    return tasks;
}

/// A task's number in the new graph, or `none`.
class Renumbered {
public:
    static constexpr TaskId none = SIZE_MAX;
    explicit Renumbered(std::size_t tasks) : numbers_(tasks, none) {}
    TaskId& operator[](TaskId old) { return numbers_[old]; }
    /// Whether all that `id` waits for has a number.
    bool may_follow(const TaskGraph& graph, TaskId id) const {
        bool all = true;
        graph.for_each_edge_into(id,
                                 [&](const Edge& edge) { all = all && numbers_[edge.predecessor] != none; });
        return all;
    }

private:
    std::vector<TaskId> numbers_;
};

/// One GPU's host while it enqueues.
struct Enqueuer {
    std::size_t next = 0;  ///< place in its list
    int stream = -1;       ///< of the last call; −1: none yet
    std::vector<TaskId> enqueued = {};
};

/// Events of other streams of the same GPU, and of other GPUs, that the task waits for.
int waits_of(const TaskGraph& graph, TaskId id) {
    int waits = 0;
    graph.for_each_edge_into(id, [&](const Edge& edge) {
        waits += !edge.of_progress() && graph.stream_number(edge.predecessor) != graph.stream_number(id);
    });
    return waits;
}

class Enqueueing {
public:
    Enqueueing(const TaskGraph& graph, const Host& host, Seconds first)
        : graph_(graph),
          host_(host),
          first_(first),
          lists_(by_gpu(graph)),
          hosts_(lists_.size()),
          numbers_(graph.size()) {}

    TaskGraph result() && {
        new_.reserve(2 * graph_.size(), graph_.edge_count() + 2 * graph_.size());
        for (std::size_t left = graph_.size(); left > 0;)
            for (std::size_t gpu = 0; gpu < lists_.size(); ++gpu) {
                if (hosts_[gpu].next == lists_[gpu].size()) continue;
                const TaskId id = lists_[gpu][hosts_[gpu].next];
                if (!numbers_.may_follow(graph_, id)) continue;
                add(hosts_[gpu], id);
                --left;
            }
        return std::move(new_);
    }

private:
    void add(Enqueuer& host, TaskId id) {
        const Task& task = graph_[id];
        Seconds time = host_.call(task, waits_of(graph_, id), host.stream >= 0 && host.stream != task.stream);
        if (host.next == 0) time += first_ + host_.calls.graph + late_start(task.gpu);
        const TaskId call = time > Seconds() ? add_call(host, task, time) : Renumbered::none;
        const TaskId number = numbers_[id] = new_.add(task);
        graph_.for_each_edge_into(id, [&](const Edge& edge) {
            new_.add_edge({numbers_[edge.predecessor], number, edge.from, edge.to});
        });
        if (call != Renumbered::none) last_call(task.gpu) = call;
        if (const TaskId before = last_call(task.gpu); before != Renumbered::none)
            new_.add_edge({before, number});
        host.stream = task.stream;
        host.enqueued.push_back(number);
        ++host.next;
    }

    TaskId add_call(const Enqueuer& host, const Task& task, Seconds time) {
        Task call{.work = HostWork{time},
                  .gpu = task.gpu,
                  .stream = host_stream,
                  .shard = task.shard,
                  .chunk = task.chunk};
        const auto depth = static_cast<std::size_t>(host_.queue_depth);
        if (depth == 0 || host.enqueued.size() < depth) return new_.add(call);
        return new_.add(call, {host.enqueued[host.enqueued.size() - depth]});
    }

    Seconds late_start(int gpu) const {
        return gpu == 0 ? Seconds() : host_.starts.skew * gpu / (graph_.gpus() - 1);
    }

    TaskId& last_call(int gpu) {
        last_calls_.resize(lists_.size(), Renumbered::none);
        return last_calls_[static_cast<std::size_t>(gpu)];
    }

    const TaskGraph& graph_;
    const Host& host_;
    Seconds first_;
    std::vector<std::vector<TaskId>> lists_;
    std::vector<Enqueuer> hosts_;
    std::vector<TaskId> last_calls_;
    Renumbered numbers_;
    TaskGraph new_;
};

}  // namespace

// clang-format off
std::span<const Field<Host>> Host::fields() {
    static const std::array rows{
        plain_field<&Host::threads>("threads", host_threads_names, "one_a_gpu: a thread or process a GPU. one: one thread for all GPUs, which has enqueued everything before the GPUs begin; calls take no time.").optional(),
        plain_field<&Host::events>("events", host_events_names, "What a stream records for streams that wait for it: events with a time, or untimed ones (cudaEventDisableTiming). Behind a pull whose end is polled for, a stream waits for the poll if it records an event with a time; behind an untimed one it goes on, unless another GPU waits for it.").optional(),
        field<&Host::calls, &Host::Calls::gemm>("gemm_us", "Host time of a call that enqueues a GEMM.").optional(),
        field<&Host::calls, &Host::Calls::kernel>("kernel_us", "Host time of a call that enqueues any other kernel.").optional(),
        field<&Host::calls, &Host::Calls::copy>("copy_us", "Host time of a call that enqueues a copy by DMA, or inside the GPU.").optional(),
        field<&Host::calls, &Host::Calls::collective>("collective_us", "Host time of a library's collective.").optional(),
        field<&Host::calls, &Host::Calls::event>("event_us", "Host time of recording an event.").optional(),
        field<&Host::calls, &Host::Calls::wait>("wait_us", "Host time of letting a stream wait for an event.").optional(),
        field<&Host::calls, &Host::Calls::stream>("stream_us", "Host time of turning to another stream.").optional(),
        field<&Host::calls, &Host::Calls::graph>("graph_us", "Host time of launching a captured graph, which enqueues all.").optional(),
        field<&Host::starts, &Host::Starts::replay>("replay_us", "Steady state: from the end of a captured graph to the begin of its next replay.").optional(),
        field<&Host::starts, &Host::Starts::replay_collective>("replay_collective_us", "In addition to replay_us, if the graph has a library's collective.").optional(),
        field<&Host::starts, &Host::Starts::release>("release_us", "How much later than a GPU's first stream its other streams begin, because they wait for an event that the first records. If above 0, the end of a run is an event with a time, too: launch.event_us behind a kernel.").optional(),
        field<&Host::starts, &Host::Starts::pause>("pause_us", "Steady state: from the end of a run to the begin of the next, in which the GPUs are idle and cool, as in a benchmark that waits for all GPUs before it goes on. No result counts it.").optional(),
        field<&Host::starts, &Host::Starts::skew>("start_skew_us", "How much later the last GPU's host begins than the first one's, the others between them by rank. Not in a steady state, where ranks have waited for each other before.").optional(),
        field<&Host::gemm_speed>("gemm_speed", "Rate of GEMMs on the program's operands, as a fraction of that on operands of the microbenchmark, which are evenly distributed from -1 to 1. Default 1.").in({0.1, 1}).optional(),
        field<&Host::gemm_saved>("gemm_saved_us", "What a library's GEMM takes less than between launches on a stream, where GEMMs are measured: the gap before it, launch.kernel_us included.").optional(),
        field<&Host::queue_depth>("queue_depth", "Tasks that a GPU's queues hold; a host with more waits. 0: no limit.").in({0, 1e6}).optional(),
        field<&Host::hardware_queues>("hardware_queues", "Queues of a GPU's hardware, to which its streams are assigned in turn: what CUDA_DEVICE_MAX_CONNECTIONS or GPU_MAX_HW_QUEUES says. A queue runs its tasks in the order in which they were enqueued, so a task that waits holds up those of other streams behind it. 0: one for each stream.").in({0, 1024}).optional(),
        plain_field<&Host::queue_waits>("queue_waits", queue_waits_names, "What the next task of a hardware queue waits for: that the one before it has begun (CUDA), or that it has ended (HIP, whose packets have the barrier bit).").optional(),
        Field<Host>::checked("error_pct", "Mean |predicted / measured - 1| of an operator's calls on hosts, or in runs, that gave no value.").plain_in({0, 1000}).or_else("not known")};
    return rows;
}
// clang-format on

Seconds Host::call(const Task& task, int waits, bool other_stream) const {
    if (calls.graph > Seconds() || task.continues) return {};
    const Seconds around = waits * (calls.event + calls.wait) + (other_stream ? calls.stream : Seconds());
    switch (task.kind()) {
        case TaskKind::gemm:
            return around + calls.gemm;
        case TaskKind::copy:
            return around + (task.by_dma() ? calls.copy : calls.kernel);
        case TaskKind::local_copy:
            return around + calls.copy;
        case TaskKind::collective:
            return around + calls.collective;
        case TaskKind::reduce:
        case TaskKind::memory_bound:
            return around + calls.kernel;
        case TaskKind::host:
            return {};
    }
    return {};
}

Seconds Host::of_operator(const std::string& schedule, CollectiveKind collective) const {
    const auto found = operators.find(schedule + "_" + name_of(collective));
    return found == operators.end() || calls.graph > Seconds() ? Seconds() : found->second;
}

bool Host::calls_take_time() const {
    const std::array times{calls.gemm, calls.kernel, calls.copy,  calls.collective, calls.event,
                           calls.wait, calls.stream, calls.graph, starts.skew};
    return !operators.empty() || std::ranges::any_of(times, [](Seconds time) { return time > Seconds(); });
}

bool Host::is_replay() const {
    static const std::set<std::string> of_text{"schema", "name", "description", "threads"};
    return threads == HostThreads::one &&
           std::ranges::all_of(file.items(), [](const auto& item) { return of_text.contains(item.key()); });
}

Host read_host(const ConfigFile& file) {
    ConfigObject config = file.view();
    config.version(newest_version("host"));
    Host host;
    host.name = config.text("name");
    host.description = config.text("description");
    read_fields(config, host, Host::fields());
    host.file = file.json;
    if (config.has("operators_us")) {
        ConfigObject operators = config.object("operators_us");
        for (const std::string& key : operators.keys())
            host.operators[key] = microseconds(operators.sourced(key, {0, 1e6}));
        operators.finish();
    }
    if (config.has("device")) {
        ConfigObject device = config.object("device");
        const std::vector<std::string> known = device_values();
        for (const std::string& key : device.keys()) {
            if (!contains(known, key)) device.fail(key, "is no value of a device" + suggestion(key, known));
            host.device["device." + key] = device.sourced(key, {0, 1e6});
        }
        device.finish();
    }
    config.finish();
    return host;
}

// clang-format off
Json host_schema() {
    Json schema = named_file_schema("Host",
        "Who enqueues, a thread or a process a GPU, and how long a call takes on it. What is left out takes no time.",
        newest_version("host"));
    add_fields<Host>(schema, "sourced");
    const Json name{{"pattern", "^[a-z][a-zA-Z0-9_.]*$"}}, 
        value{{"allOf", {{{"$ref", "#/definitions/sourced"}}}},
              {"properties", {{"value", {{"type", "number"}, {"minimum", 0}, {"maximum", 1e6}}}}}};
    schema["properties"]["operators_us"] = map_schema(
        "What a framework's operator takes in addition to its calls, by schedule and collective: async_tp_all_gather.",
        name, value);
    schema["properties"]["device"] = map_schema(
        "Values of the device's file that are others with this host: launch.kernel_us. A what-if of the run goes before. Devices whose files lack one of them keep all of their own.",
        name, value);
    schema["definitions"] = value_definitions();
    return schema;
}
// clang-format on

TaskGraph enqueued(const TaskGraph& graph, const Host& host, Seconds first) {
    TaskGraph result = Enqueueing(graph, host, first).result();
    result.name_streams(graph.stream_names());
    return result;
}

Seconds host_time(const TaskGraph& graph) {
    std::vector<Seconds> sums(static_cast<std::size_t>(std::max(graph.gpus(), 1)));
    for (TaskId id = 0; id < graph.size(); ++id)
        if (const auto* call = std::get_if<HostWork>(&graph[id].work))
            sums[static_cast<std::size_t>(graph[id].gpu)] += call->time;
    return *std::ranges::max_element(sums);
}

Seconds replay_gap(const TaskGraph& graph, const Host& host) {
    if (host.calls.graph == Seconds()) return {};
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* collective = std::get_if<CollectiveKernelWork>(&graph[id].work);
        if (collective != nullptr && collective->kernel == CollectiveKernel::library)
            return host.starts.replay + host.starts.replay_collective;
    }
    return host.starts.replay;
}

}  // namespace overlap
