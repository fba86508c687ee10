#include <algorithm>

#include "sim/core/config_reader.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/input_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {

RecordedTrace read_kineto_trace(const std::filesystem::path& path, const KernelTable& kernels);
RecordedTrace read_nsight_trace(const std::filesystem::path& path, const KernelTable& kernels);
RecordedTrace read_rocprof_csv(const std::filesystem::path& path, const KernelTable& kernels);
RecordedTrace read_rocprof_json(const std::filesystem::path& path, const KernelTable& kernels);
RecordedTrace read_own_trace(const std::filesystem::path& path, const KernelTable& kernels);

namespace {

using Path = std::filesystem::path;

bool holds(std::string_view head, std::string_view text) {
    return head.find(text) != std::string_view::npos;
}

}  // namespace

// To add a format: one file with a read_ function, one entry here, one line in CMakeLists.txt.
const std::vector<TraceImporter>& trace_importers() {
    static const std::vector<TraceImporter> entries{
        {"nsight", "Nsight Systems: nsys export --type sqlite report.nsys-rep",
         [](const Path&, std::string_view head) { return head.starts_with("SQLite format 3"); },
         read_nsight_trace},
        {"rocprof_csv", "rocprofv3 --kernel-trace --memory-copy-trace --output-format csv: *_trace.csv",
         [](const Path& path, std::string_view head) {
             return path.extension() == ".csv" && holds(head, "Start_Timestamp") &&
                    (holds(head, "Kernel_Name") || holds(head, "Direction"));
         },
         read_rocprof_csv},
        {"rocprof_json", "rocprofv3 --kernel-trace --memory-copy-trace --output-format json",
         [](const Path&, std::string_view head) { return holds(head, "\"rocprofiler-sdk-tool\""); },
         read_rocprof_json},
        {"kineto", "PyTorch profiler: prof.export_chrome_trace(\"trace.json\") or (\"trace.json.gz\")",
         [](const Path& path, std::string_view head) {
             return holds(head, "\"traceEvents\"") || path.string().ends_with(".json.gz");
         },
         read_kineto_trace},
        {"own", "a measured case of ours, with spans (replay --spans, or sim import)",
         [](const Path&, std::string_view head) { return holds(head, "\"system\""); }, read_own_trace}};
    return entries;
}

const TraceImporter* recognised_trace(const std::filesystem::path& path) {
    // PyTorch writes facts about every GPU and process group before its events.
    constexpr std::size_t looked_at = std::size_t{256} << 10;
    std::ifstream in = open_input(path, "a trace");
    std::string head(looked_at, '\0');
    in.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(in.gcount()));
    for (const TraceImporter& entry : trace_importers())
        if (entry.recognises(path, head)) return &entry;
    return nullptr;
}

const TraceImporter& find_trace_importer(const std::filesystem::path& path, const std::string& name) {
    const std::vector<std::string> names = mapped(trace_importers(), &TraceImporter::name);
    if (!name.empty())
        return trace_importers()[known_place(name, names,
                                             "trace format " + in_quotes(name) + " is not known")];
    if (const TraceImporter* entry = recognised_trace(path)) return *entry;
    if (path.extension() == ".json")
        require_kind(read_json_file(path), path.string(), FileKind::chrome_trace);
    throw UserError(path.string() + ": is of no known trace format" + suggestion("", names));
}

}  // namespace overlap
