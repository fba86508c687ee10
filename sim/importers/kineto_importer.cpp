#include <cmath>

#include "sim/core/archive.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
namespace {

// Allowed times in a file, us: absolute times until the year 2096, durations up to eleven days.
constexpr Range absolute_us{0.0, 4e15};
constexpr Range duration_us{0.0, 1e12};

Json parse_compressed(const std::filesystem::path& path) {
    const std::string text = decompressed(path);
    require_memory_to_parse(path, static_cast<double>(text.size()));
    return parse_json(text, path.string());
}

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
    std::shared_ptr<const RecordedOperator> of(const Json& id) const {
        if (!id.is_number_integer()) return nullptr;
        const auto* found = value_at(operators_, id.get<std::int64_t>());
        return found == nullptr ? nullptr : *found;
    }

private:
    std::map<std::int64_t, std::shared_ptr<const RecordedOperator>> operators_;
};

constexpr const char* external_id = "External id";

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
    return collective;
}

/// Of a complete event that has one.
std::string category_of(ConfigObject& event) {
    const bool complete = event.has("ph") && event.text("ph") == "X";
    return complete && event.has("cat") ? event.text("cat") : "";
}

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

Launches read_launches(std::vector<ConfigObject>& events, Launchers& launchers) {
    constexpr std::string_view step = "ProfilerStep#";
    Launches launches;
    for (ConfigObject& event : events) {
        const std::string category = category_of(event);
        if (category == "cuda_runtime" || category == "cuda_driver") {
            if (!event.has("args")) continue;
            ConfigObject args = event.object("args");
            if (!args.has("correlation")) continue;
            launches.times.emplace(correlation_of(args), nanoseconds(event, "ts", absolute_us));
        } else if (category == "cpu_op") {
            if (!event.has("args")) continue;
            ConfigObject args = event.object("args");
            if (args.has(external_id)) launchers.add(args.raw(external_id), event.text("name"), args);
        } else if (category == "user_annotation") {
            const std::string name = event.text("name");
            if (!name.starts_with(step)) continue;
            const auto number = parsed<std::int64_t>(std::string_view(name).substr(step.size()));
            if (!number || *number < 0)
                event.fail("name", "is no step of torch.profiler, expected ProfilerStep#N");
            const std::int64_t start = nanoseconds(event, "ts", absolute_us);
            launches.steps[start] = {*number, start + nanoseconds(event, "dur", duration_us)};
        }
    }
    return launches;
}

std::optional<KernelUse> use_of(const std::string& category, const std::string& name, ConfigObject& args,
                                const KernelTable& kernels) {
    if (category == "gpu_memset") return KernelUse{TaskKind::memory_bound};
    if (category == "kernel") return kernels.use_of(name);
    if (args.has("fromDevice") && args.has("toDevice")) {
        const bool same =
            args.integer("fromDevice", 0, largest_gpu) == args.integer("toDevice", 0, largest_gpu);
        return KernelUse{same ? TaskKind::local_copy : TaskKind::copy};
    }
    if (name.starts_with("Memcpy PtoP")) return KernelUse{TaskKind::copy};
    if (name.starts_with("Memcpy DtoD")) return KernelUse{TaskKind::local_copy};
    return std::nullopt;  // to or from the host
}

}  // namespace

// The Chrome trace of torch.profiler. Complete events ("ph": "X") of the categories kernel, gpu_memcpy
// and gpu_memset ran on GPUs, with ts and dur in us (ts relative to baseTimeNanoseconds), args.device
// and args.stream. A copy between GPUs has fromDevice, toDevice and inDevice, the GPU whose engine
// copies. All other events are of the host: user_annotation "ProfilerStep#N", and cuda_runtime and
// cuda_driver calls (hipLaunch… on ROCm), which launch the event with the same args.correlation. With
// one process a GPU, distributedInfo.rank is the GPU. Source: github.com/pytorch/kineto,
// libkineto/src/output_json.cpp and CuptiActivity.cpp.
RecordedTrace read_kineto_trace(const std::filesystem::path& path, const KernelTable& kernels) {
    const Json json = path.extension() == ".gz" ? parse_compressed(path) : read_json_file(path);
    require_kind(json, path.string(), FileKind::chrome_trace);
    ConfigObject file(json, path.string());
    RecordedTrace trace;
    trace.recorded_by = "PyTorch profiler (Kineto)";
    std::optional<std::int64_t> rank;
    if (file.has("distributedInfo")) rank = file.object("distributedInfo").integer("rank", 0, largest_gpu);
    trace.own_clock = rank.has_value();
    const std::int64_t base =
        file.has("baseTimeNanoseconds") ? file.integer("baseTimeNanoseconds", 0, latest_recorded_ns) : 0;
    std::vector<ConfigObject> events = file.objects("traceEvents");
    Launchers launchers;
    const Launches launches = read_launches(events, launchers);
    trace.device = device_of(file);
    std::optional<std::int64_t> own_device;
    for (ConfigObject& event : events) {
        const std::string category = category_of(event);
        if (category != "kernel" && category != "gpu_memcpy" && category != "gpu_memset") continue;
        const std::string name = event.text("name");
        ConfigObject args = event.object("args");
        const std::optional<KernelUse> use = use_of(category, name, args, kernels);
        if (!use) {
            auto& other = trace.not_mapped[name];
            ++other.count;
            other.ns += nanoseconds(event, "dur", duration_us);
            continue;
        }
        const std::string key = args.has("inDevice") ? "inDevice" : "device";
        const std::int64_t device = args.integer(key, 0, largest_gpu);
        if (rank && own_device.value_or(device) != device)
            args.fail(key, "is " + std::to_string(device) + ", but the process of rank " +
                               std::to_string(*rank) + " uses GPU " + std::to_string(*own_device) +
                               ", expected one GPU a process");
        own_device = device;
        const std::int64_t start = base + nanoseconds(event, "ts", absolute_us);
        RecordedSpan span{.name = name,
                          .gpu = rank.value_or(device),
                          .track = "stream " + std::to_string(args.integer("stream", 0, INT64_MAX)),
                          .start_ns = start,
                          .end_ns = start + nanoseconds(event, "dur", duration_us)};
        if (args.has(external_id)) span.by = launchers.of(args.raw(external_id));
        span.collective = collective_of(args);
        if (category == "gpu_memcpy" && args.has("bytes")) span.bytes = args.number("bytes", {0, 1e18});
        if (args.has("correlation")) span.step = launches.step_of(correlation_of(args));
        trace.add(std::move(span), use, [&](const std::string& problem) { event.fail("", problem); });
    }
    return trace;
}

}  // namespace overlap
