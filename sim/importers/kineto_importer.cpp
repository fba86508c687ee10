#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "sim/core/file_kind.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
namespace {

// Allowed times in a file, us: absolute times until the year 2096, durations up to eleven days.
constexpr Range absolute_us{0.0, 4e15};
constexpr Range duration_us{0.0, 1e12};
constexpr std::int64_t largest_ranks = 10'000'000;  // of a job: more than any cluster has

std::int64_t nanoseconds(ConfigObject& event, const std::string& key, Range range) {
    return std::llround(event.number(key, range) * 1e3);
}

/// When the host launched each kernel, by the number that links a launch to its kernel, ns, and when
/// each step of torch.profiler began. A kernel belongs to the step in which it was launched, because
/// steps overlap on the GPU.
struct Launches {
    struct Step {
        std::int64_t number = 0, end = 0;
    };
    std::map<std::int64_t, std::int64_t> times;
    std::map<std::int64_t, Step> steps;  ///< by start
    std::vector<HostWait> waits;
    bool of_hip = false;  ///< calls of AMD's runtime

    std::optional<std::int64_t> step_of(std::int64_t correlation) const {
        const std::int64_t* launch = value_at(times, correlation);
        if (launch == nullptr) return std::nullopt;
        auto step = steps.upper_bound(*launch);
        if (step == steps.begin()) return std::nullopt;
        --step;
        return *launch < step->second.end ? std::optional(step->second.number) : std::nullopt;
    }
};

/// Whole numbers of a list, or none for anything else, such as the shape of a list of tensors.
std::vector<std::int64_t> shape_of(const Json& list) {
    std::vector<std::int64_t> shape;
    if (!list.is_array()) return shape;
    for (const Json& size : list) {
        if (!size.is_number_integer() || size < 0 || size > 1'000'000'000) return {};
        shape.push_back(size.get<std::int64_t>());
    }
    return shape;
}

/// "[0, 2, 4]"; none for "[0, 1, ..., 63]", which is not all of them.
std::vector<std::int64_t> members_of(const Json& list) {
    const Json ranks = list.is_string() ? Json::parse(list.get<std::string>(), nullptr, false) : list;
    return shape_of(ranks);
}

/// What a kernel, or the operator record_param_comms that launched it, says of its collective; null if nothing.
std::shared_ptr<const RecordedCollective> collective_of(ConfigObject& args) {
    if (!args.has("Collective name")) return nullptr;
    auto collective = std::make_shared<RecordedCollective>();
    collective->name = args.text("Collective name");
    const auto number = [&](const char* key) {
        return args.has(key) ? args.integer(key, 0, 1'000'000'000'000'000) : 0;
    };
    collective->in_elements = number("In msg nelems");
    collective->out_elements = number("Out msg nelems");
    collective->ranks = number("Group size");
    if (args.has("dtype")) collective->dtype = args.text("dtype");
    if (args.has("Process Group Ranks")) collective->members = members_of(args.raw("Process Group Ranks"));
    return collective;
}

constexpr const char* external_id = "External id";

/// The operators of the host by the number that their kernels have, too.
class Launchers {
public:
    /// Shapes are there if the profiler was told so (record_shapes); anything unusual in them is left out.
    void add(const Json& id, const std::string& name, ConfigObject& args) {
        auto op = std::make_shared<RecordedOperator>();
        op->name = name;
        if (args.has("Input Dims"))
            for (const Json& dims : args.raw("Input Dims")) op->dims.push_back(shape_of(dims));
        for (const char* key : {"Input type", "Input Types"})
            if (args.has(key))
                for (const Json& type : args.raw(key))
                    op->types.push_back(type.is_string() ? type.get<std::string>() : "");
        if (id.is_number_integer()) operators_[id.get<std::int64_t>()] = std::move(op);
    }
    /// record_param_comms, from `start` to `end`, with the collectives that it launches.
    void add_collective(const Json& id, std::int64_t start, std::int64_t end, ConfigObject& args) {
        auto collective = collective_of(args);
        if (collective == nullptr) return;
        if (id.is_number_integer()) collectives_[id.get<std::int64_t>()] = collective;
        calls_[start] = {end, std::move(collective)};
    }
    std::shared_ptr<const RecordedOperator> of(const Json& id) const { return found(operators_, id); }
    /// Found by the number of the operator, else by the operator that ran when the kernel was launched.
    std::shared_ptr<const RecordedCollective> collective(const Json& id,
                                                         std::optional<std::int64_t> launched) const {
        if (auto of_operator = found(collectives_, id)) return of_operator;
        if (!launched) return nullptr;
        const auto after = calls_.upper_bound(*launched);
        if (after == calls_.begin()) return nullptr;
        const auto& [end, collective] = std::prev(after)->second;
        return *launched <= end ? collective : nullptr;
    }

private:
    template <class T>
    using ById = std::map<std::int64_t, std::shared_ptr<const T>>;
    template <class T>
    static std::shared_ptr<const T> found(const ById<T>& all, const Json& id) {
        if (!id.is_number_integer()) return nullptr;
        const auto* one = value_at(all, id.get<std::int64_t>());
        return one == nullptr ? nullptr : *one;
    }

    ById<RecordedOperator> operators_;
    ById<RecordedCollective> collectives_;
    std::map<std::int64_t, std::pair<std::int64_t, std::shared_ptr<const RecordedCollective>>>
        calls_;  ///< by start
};

constexpr std::array<std::string_view, 3> of_gpus{"kernel", "gpu_memcpy", "gpu_memset"};
constexpr std::array<std::string_view, 4> of_hosts{"cuda_runtime", "cuda_driver", "cpu_op",
                                                   "user_annotation"};

/// The complete events of a file that have a category.
class Events {
public:
    Events(ConfigObject& file, const Json& json) : file_(file.file()) {
        if (!json.contains("traceEvents") || !json.at("traceEvents").is_array())
            file.objects("traceEvents");  // throws
        events_ = &json.at("traceEvents");
    }

    /// Calls visit(category, event) for those of the categories, in their order. Most events need no more than a look.
    template <class Visit>
    void each(std::span<const std::string_view> categories, Visit visit) const {
        for (std::size_t i = 0; i < events_->size(); ++i) {
            const Json& json = (*events_)[i];
            if (json.is_object() && !(has_text(json, "ph", complete) && has_text(json, "cat", categories)))
                continue;
            ConfigObject event(json, file_, "/traceEvents/" + std::to_string(i));
            if (event.text("ph") == "X") visit(event.text("cat"), event);
        }
    }

private:
    /// Also of what is no text, which is told where it is read.
    static bool has_text(const Json& event, const char* key, std::span<const std::string_view> texts) {
        const auto found = event.find(key);
        if (found == event.end() || !found->is_string()) return found != event.end();
        return std::ranges::find(texts, found->get_ref<const std::string&>()) != texts.end();
    }

    static constexpr std::array<std::string_view, 1> complete{"X"};
    std::string file_;
    const Json* events_;
};

std::int64_t correlation_of(ConfigObject& args) {
    return args.integer("correlation", INT64_MIN, INT64_MAX);
}

/// "NVIDIA H200", if it is in the file.
std::string device_of(ConfigObject& file) {
    if (!file.has("deviceProperties")) return "";
    for (ConfigObject& device : file.objects("deviceProperties"))
        if (device.has("name")) return device.text("name");
    return "";
}

Launches read_launches(const Events& events, Launchers& launchers) {
    constexpr std::string_view step = "ProfilerStep#";
    Launches launches;
    events.each(of_hosts, [&](const std::string& category, ConfigObject& event) {
        if (category == "cuda_runtime" || category == "cuda_driver") {
            const std::string name = event.text("name");
            const std::int64_t start = nanoseconds(event, "ts", absolute_us);
            launches.of_hip = launches.of_hip || name.starts_with("hip");
            if (name.find("Synchronize") != std::string::npos)
                launches.waits.push_back({start, start + nanoseconds(event, "dur", duration_us)});
            if (!event.has("args")) return;
            ConfigObject args = event.object("args");
            if (args.has("correlation")) launches.times.emplace(correlation_of(args), start);
        } else if (category == "cpu_op") {
            if (!event.has("args")) return;
            ConfigObject args = event.object("args");
            const Json id = args.has(external_id) ? args.raw(external_id) : Json();
            if (!id.is_null()) launchers.add(id, event.text("name"), args);
            if (!args.has("Collective name")) return;
            const std::int64_t start = nanoseconds(event, "ts", absolute_us);
            launchers.add_collective(id, start, start + nanoseconds(event, "dur", duration_us), args);
        } else if (category == "user_annotation") {
            const std::string name = event.text("name");
            if (!name.starts_with(step)) return;
            const auto number = parsed<std::int64_t>(std::string_view(name).substr(step.size()));
            if (!number || *number < 0)
                event.fail("name", "is no step of torch.profiler, expected ProfilerStep#N");
            const std::int64_t start = nanoseconds(event, "ts", absolute_us);
            launches.steps[start] = {*number, start + nanoseconds(event, "dur", duration_us)};
        }
    });
    return launches;
}

/// One event of a GPU.
struct Activity {
    std::string category, name;
    ConfigObject args;

    std::optional<KernelUse> use(const KernelTable& kernels) {
        if (category == "kernel") return kernels.use_of(name);
        if (category == "gpu_memset") return KernelUse{TaskKind::memory_bound};
        if (args.has("fromDevice") && args.has("toDevice")) {
            const bool same =
                args.integer("fromDevice", 0, largest_gpu) == args.integer("toDevice", 0, largest_gpu);
            return KernelUse{same ? TaskKind::local_copy : TaskKind::copy};
        }
        if (name.starts_with("Memcpy PtoP")) return KernelUse{TaskKind::copy};
        return is_local_copy() ? KernelUse{TaskKind::local_copy} : host_copy;
    }
    bool is_local_copy() const { return category == "gpu_memcpy" && name.starts_with("Memcpy DtoD"); }
    bool is_with_host() const {
        return category == "gpu_memcpy" && !is_local_copy() && !name.starts_with("Memcpy PtoP");
    }
};

/// What a file says of the job: its rank, and how many there are.
void read_job(ConfigObject& file, RecordedTrace& trace, std::optional<std::int64_t>& rank) {
    if (!file.has("distributedInfo")) return;
    ConfigObject job = file.object("distributedInfo");
    rank = job.integer("rank", 0, largest_gpu);
    trace.gpu_numbers = GpuNumbers::ranks;
    if (!job.has("world_size")) return;
    trace.ranks = job.integer("world_size", 1, largest_ranks);
    if (*rank >= *trace.ranks)
        job.fail("rank", "is " + std::to_string(*rank) + ", expected less than world_size, " +
                             std::to_string(*trace.ranks));
}

/// Reads the events of GPUs.
class GpuEvents {
public:
    GpuEvents(RecordedTrace& trace, const KernelTable& kernels, const Launches& launches,
              const Launchers& launchers, std::optional<std::int64_t> rank, std::int64_t base)
        : trace_(trace),
          kernels_(kernels),
          launches_(launches),
          launchers_(launchers),
          rank_(rank),
          base_(base) {}

    void add(ConfigObject& event, const std::string& category) {
        Activity activity{category, event.text("name"), event.object("args")};
        ConfigObject& args = activity.args;
        const std::int64_t start = base_ + nanoseconds(event, "ts", absolute_us);
        RecordedSpan span{.name = activity.name,
                          .gpu = gpu_of(args),
                          .track = "stream " + std::to_string(args.integer("stream", 0, INT64_MAX)),
                          .start_ns = start,
                          .end_ns = start + nanoseconds(event, "dur", duration_us)};
        const Json id = args.has(external_id) ? args.raw(external_id) : Json();
        span.launch.by = launchers_.of(id);
        std::optional<std::int64_t> launched;
        if (args.has("correlation")) {
            if (const auto* at = value_at(launches_.times, correlation_of(args))) launched = *at;
            span.launch.step = launches_.step_of(correlation_of(args));
        }
        if (launched) span.launch.ns = base_ + *launched;
        if (category == "gpu_memcpy" && args.has("bytes")) span.bytes = args.number("bytes", {0, 1e18});
        span.with_host = activity.is_with_host();
        // On ROCm copies between GPUs have the same name as copies within one (RocprofActivity_inl.h).
        span.ends_unknown = launches_.of_hip && activity.is_local_copy() && !args.has("fromDevice");
        const std::optional<KernelUse> use = activity.use(kernels_);
        span.collective = collective_of(args);
        if (!span.collective && use && use->kind == TaskKind::collective)
            span.collective = launchers_.collective(id, launched);
        trace_.add(std::move(span), use, [&](const std::string& problem) { event.fail("", problem); });
    }

private:
    /// The rank, else the number of the GPU whose engine copies, or that computes.
    std::int64_t gpu_of(ConfigObject& args) {
        const std::string key = args.has("inDevice") ? "inDevice" : "device";
        const std::int64_t device = args.integer(key, 0, largest_gpu);
        if (rank_ && own_device_.value_or(device) != device)
            args.fail(key, "is " + std::to_string(device) + ", but the process of rank " +
                               std::to_string(*rank_) + " uses GPU " + std::to_string(*own_device_) +
                               ", expected one GPU a process");
        own_device_ = device;
        return rank_.value_or(device);
    }

    RecordedTrace& trace_;
    const KernelTable& kernels_;
    const Launches& launches_;
    const Launchers& launchers_;
    std::optional<std::int64_t> rank_, own_device_ = {};
    std::int64_t base_;
};

}  // namespace

// The Chrome trace of torch.profiler. Complete events ("ph": "X") of the categories kernel, gpu_memcpy
// and gpu_memset ran on GPUs, with ts and dur in us (ts relative to baseTimeNanoseconds), args.device
// and args.stream. A copy between GPUs has fromDevice, toDevice and inDevice, the GPU whose engine
// copies. All other events are of the host: user_annotation "ProfilerStep#N", and cuda_runtime and
// cuda_driver calls (hipLaunch... on ROCm), which launch the event with the same args.correlation. With
// one process a GPU, distributedInfo.rank is the GPU. Source: github.com/pytorch/kineto,
// libkineto/src/output_json.cpp and CuptiActivity.cpp.
RecordedTrace read_kineto_trace(const std::filesystem::path& path, const KernelTable& kernels) {
    const Json json = read_json_trace(path);
    require_kind(json, path.string(), FileKind::chrome_trace);
    ConfigObject file(json, path.string());
    RecordedTrace trace;
    trace.recorded_by = "PyTorch profiler (Kineto)";
    trace.own_clock = true;  // processes' clocks differ by tens of microseconds
    std::optional<std::int64_t> rank;
    read_job(file, trace, rank);
    const std::int64_t base =
        file.has("baseTimeNanoseconds") ? file.integer("baseTimeNanoseconds", 0, latest_recorded_ns) : 0;
    const Events events(file, json);
    Launchers launchers;
    Launches launches = read_launches(events, launchers);
    trace.device = device_of(file);
    GpuEvents gpu(trace, kernels, launches, launchers, rank, base);
    events.each(of_gpus, [&](const std::string& category, ConfigObject& event) { gpu.add(event, category); });
    for (HostWait& wait : launches.waits) {
        wait.start_ns += base;
        wait.end_ns += base;
    }
    trace.add_host_waits(std::move(launches.waits));
    return trace;
}

}  // namespace overlap
