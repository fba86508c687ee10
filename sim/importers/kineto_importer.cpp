#include <cmath>

#include "sim/core/config_reader.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
namespace {

// The Chrome trace that torch.profiler writes: complete events ("ph": "X") of categories kernel, gpu_memcpy
// and gpu_memset are what GPUs did, with ts and dur in us (ts relative to baseTimeNanoseconds) and
// args.device and args.stream; all else is the host. With one process a GPU, distributedInfo.rank is the GPU.
// Source: github.com/pytorch/kineto, libkineto/src/output_json.cpp.
class KinetoImporter final : public TraceImporter {
public:
    RecordedTrace read(const std::filesystem::path& path) const override {
        const Json json = read_json_file(path);
        ConfigObject file(json, path.string());
        RecordedTrace trace;
        trace.recorded_by = "PyTorch profiler (Kineto)";
        std::optional<int> rank;
        if (file.has("distributedInfo"))
            rank = static_cast<int>(file.object("distributedInfo").integer("rank", 0, 1'000'000));
        const std::int64_t base =
            file.has("baseTimeNanoseconds") ? file.integer("baseTimeNanoseconds", 0, INT64_MAX) : 0;
        for (ConfigObject& event : file.objects("traceEvents")) {
            if (!event.has("ph") || event.text("ph") != "X" || !event.has("cat")) continue;
            const std::string category = event.text("cat");
            if (category != "kernel" && category != "gpu_memcpy" && category != "gpu_memset") continue;
            const std::string name = event.text("name");
            const std::optional<TaskKind> kind = kind_of(category, name);
            if (!kind) {
                ++trace.not_mapped[name];
                continue;
            }
            ConfigObject args = event.object("args");
            const auto device = static_cast<int>(args.integer("device", 0, 1'000'000));
            const auto ns = [&](const std::string& key) {
                return std::llround(event.number(key, non_negative) * 1e3);
            };
            const std::int64_t start = base + ns("ts");
            trace.spans.push_back({name, *kind, rank.value_or(device),
                                   "stream " + std::to_string(args.integer("stream", 0, INT64_MAX)), start,
                                   start + ns("dur")});
        }
        return trace;
    }

private:
    static std::optional<TaskKind> kind_of(const std::string& category, const std::string& name) {
        if (category == "gpu_memset") return TaskKind::memory_bound;
        if (category == "kernel") return kind_of_kernel(name);
        if (name.starts_with("Memcpy PtoP")) return TaskKind::copy;
        if (name.starts_with("Memcpy DtoD")) return TaskKind::local_copy;
        return std::nullopt;  // to or from the host
    }
};

}  // namespace

std::unique_ptr<TraceImporter> make_kineto_importer() {
    return std::make_unique<KinetoImporter>();
}

}  // namespace overlap
