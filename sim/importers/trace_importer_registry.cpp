#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

#include "sim/core/errors.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
namespace {

using Path = std::filesystem::path;

bool holds(std::string_view head, std::string_view text) {
    return head.find(text) != std::string_view::npos;
}

}  // namespace

// To add a format: one file with a make_ function, one entry here, one line in CMakeLists.txt.
const std::vector<TraceImporterEntry>& trace_importers() {
    static const std::vector<TraceImporterEntry> entries{
        {"nsight", "Nsight Systems: nsys export --type sqlite report.nsys-rep",
         [](const Path&, std::string_view head) { return head.starts_with("SQLite format 3"); },
         make_nsight_importer},
        {"rocprof_csv", "rocprofv3 --kernel-trace --memory-copy-trace --output-format csv: *_trace.csv",
         [](const Path& path, std::string_view) { return path.extension() == ".csv"; },
         make_rocprof_csv_importer},
        {"rocprof_json", "rocprofv3 --kernel-trace --memory-copy-trace --output-format json",
         [](const Path&, std::string_view head) { return holds(head, "\"rocprofiler-sdk-tool\""); },
         make_rocprof_json_importer},
        {"own", "a measured case of ours, with spans (replay --spans, or sim import)",
         [](const Path&, std::string_view head) { return holds(head, "\"system\""); }, make_own_importer},
        {"kineto", "PyTorch profiler: prof.export_chrome_trace(\"trace.json\"), not compressed",
         [](const Path& path, std::string_view) { return path.extension() == ".json"; },
         make_kineto_importer}};
    return entries;
}

const TraceImporterEntry& find_trace_importer(const std::filesystem::path& path, const std::string& name) {
    std::vector<std::string> names;
    for (const TraceImporterEntry& entry : trace_importers()) names.push_back(entry.name);
    if (!name.empty()) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end())
            throw UserError("trace format '" + name + "' is not known" + suggestion(name, names));
        return trace_importers()[static_cast<std::size_t>(found - names.begin())];
    }
    std::ifstream in(path, std::ios::binary);
    if (!in || std::filesystem::is_directory(path))
        throw UserError(path.string() + ": cannot be read (no such file, or no permission)");
    std::string head(4096, '\0');
    in.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(in.gcount()));
    for (const TraceImporterEntry& entry : trace_importers())
        if (entry.recognises(path, head)) return entry;
    throw UserError(path.string() + ": is of no known trace format" + suggestion("", names));
}

Timeline timeline_of(std::span<const RecordedTrace> traces) {
    std::int64_t first = INT64_MAX;
    std::map<int, int> agents;
    for (const RecordedTrace& trace : traces)
        for (const RecordedSpan& span : trace.spans) {
            first = std::min(first, span.start_ns);
            if (trace.gpus_are_agents) agents.emplace(span.gpu, 0);
        }
    int gpus = 0;
    for (auto& [agent, gpu] : agents) gpu = gpus++;
    const auto time = [&](std::int64_t ns) { return Seconds(static_cast<double>(ns - first) * 1e-9); };
    std::vector<Span> result;
    for (const RecordedTrace& trace : traces)
        for (const RecordedSpan& span : trace.spans)
            result.push_back({span.name, span.kind, trace.gpus_are_agents ? agents.at(span.gpu) : span.gpu,
                              span.track, time(span.start_ns), time(span.end_ns)});
    return Timeline(std::move(result));
}

std::optional<TaskKind> kind_of_kernel(std::string_view name) {
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto any_of = [&](auto... parts) { return (holds(lower, parts) || ...); };
    if (any_of("nccl", "rccl", "msccl")) return TaskKind::collective;
    if (any_of("gemm", "cijk_", "nvjet", "cutlass", "xmma", "matmul", "_mm_")) return TaskKind::gemm;
    if (any_of("elementwise", "softmax", "layer_norm", "rms_norm", "triton_", "fillfunctor", "reduce_kernel",
               "catarray", "memset"))
        return TaskKind::memory_bound;
    return std::nullopt;
}

}  // namespace overlap
