#include <algorithm>
#include <array>

#include "sim/core/archive.hpp"
#include "sim/core/config_reader.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/json_text.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {

RecordedTrace read_kineto_trace(const std::filesystem::path& path, const KernelTable& kernels);
RecordedTrace read_nsight_trace(const std::filesystem::path& path, const KernelTable& kernels);
RecordedTrace read_rocpd(const std::filesystem::path& path, const KernelTable& kernels);
bool is_rocpd_database(const std::filesystem::path& path);
RecordedTrace read_rocprof_csv(const std::filesystem::path& path, const KernelTable& kernels);
RecordedTrace read_rocprof_json(const std::filesystem::path& path, const KernelTable& kernels);
RecordedTrace read_rocprof_perfetto(const std::filesystem::path& path, const KernelTable& kernels);
RecordedTrace read_own_trace(const std::filesystem::path& path, const KernelTable& kernels);

namespace {

using Path = std::filesystem::path;

constexpr const char* expected = "a trace";

bool holds(std::string_view head, std::string_view text) {
    return head.find(text) != std::string_view::npos;
}
bool is_database(std::string_view head) {
    return head.starts_with("SQLite format 3");
}

/// Whether an event of a Chrome trace is of a GPU, or tells what the host enqueued on it. Others, such as those of
/// Python's functions, are most of a large trace. What is no event is kept.
bool tells_of_gpus(const Json& event) {
    static constexpr std::array<std::string_view, 7> categories{
        "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cpu_op", "user_annotation"};
    const auto is = [&](const char* key, auto&& expected) {
        const auto found = event.find(key);
        return found == event.end() || !found->is_string() ||
               expected(found->template get_ref<const std::string&>());
    };
    return is("ph", [](const std::string& phase) { return phase == "X"; }) &&
           is("cat", [](const std::string& category) {
               return std::ranges::find(categories, category) != categories.end();
           });
}

/// Files of profilers that are not read, and what to do with them.
struct Foreign {
    std::string_view ending, is;
};
constexpr std::array<Foreign, 7> foreign_files{{
    {".nsys-rep", "a report of Nsight Systems; nsys export --type sqlite FILE makes what is read"},
    {".qdrep", "a report of Nsight Systems; nsys export --type sqlite FILE makes what is read"},
    {".ncu-rep",
     "a report of Nsight Compute, which has no times of a run; record with nsys profile or torch.profiler"},
    {".otf2",
     "an OTF2 trace; rocprofv3 writes what is read by default (rocpd) or with --output-format csv or json"},
    {".xplane.pb", "an XLA profile; record with nsys profile, whose export (--type sqlite) is read"},
    {".et", "a Chakra trace, which is a workload: sim --workload NAME, sim chakra read NAME"},
    {".pt.trace.zip", "an archive; unpack it"},
}};

}  // namespace

// To add a format: one file with a read_ function, one entry here, one line in CMakeLists.txt.
const std::vector<TraceImporter>& trace_importers() {
    static const std::vector<TraceImporter> entries{
        {"rocpd", "rocprofv3 --kernel-trace --memory-copy-trace --rccl-trace: *_results.db",
         [](const Path& path, std::string_view head) { return is_database(head) && is_rocpd_database(path); },
         read_rocpd},
        {"nsight", "Nsight Systems: nsys export --type sqlite report.nsys-rep",
         [](const Path&, std::string_view head) { return is_database(head); }, read_nsight_trace},
        {"rocprof_csv",
         "rocprofv3 --kernel-trace --memory-copy-trace --rccl-trace --output-format csv: *_trace.csv",
         [](const Path&, std::string_view head) {
             return !head.starts_with('{') && holds(head, "Start_Timestamp") &&
                    (holds(head, "Kernel_Name") || holds(head, "Direction") || holds(head, "Function"));
         },
         read_rocprof_csv},
        {"rocprof_json", "rocprofv3 --kernel-trace --memory-copy-trace --output-format json",
         [](const Path&, std::string_view head) { return holds(head, "\"rocprofiler-sdk-tool\""); },
         read_rocprof_json},
        {"rocprof_perfetto",
         "rocprofv3 --kernel-trace --memory-copy-trace --rccl-trace --output-format pftrace: *_results.pftrace",
         [](const Path&, std::string_view head) {  // its first packet, and annotations of its first slice
             return head.starts_with('\n') && holds(head, "begin_ns") && holds(head, "corr_id");
         },
         read_rocprof_perfetto},
        {"kineto", "PyTorch profiler: prof.export_chrome_trace(\"trace.json\")",
         [](const Path&, std::string_view head) {
             return holds(head, "\"traceEvents\"") || holds(head, "\"deviceProperties\"");
         },
         read_kineto_trace},
        {"own", "a measured case of ours, with spans (replay --spans, or sim import)",
         [](const Path&, std::string_view head) { return holds(head, "\"system\""); }, read_own_trace}};
    return entries;
}

Json read_json_trace(const Path& path) {
    const std::string text = decompressed(path, expected);
    require_memory_to_parse(path, static_cast<double>(text.size()));
    return parse_json_keeping(text, path.string(), tells_of_gpus);
}

const TraceImporter* recognised_trace(const Path& path) {
    // PyTorch writes facts about every GPU and process group before its events.
    constexpr std::size_t looked_at = std::size_t{256} << 10;
    const std::string head = decompressed(path, expected, looked_at);
    for (const TraceImporter& entry : trace_importers())
        if (entry.recognises(path, head)) return &entry;
    return nullptr;
}

const TraceImporter& find_trace_importer(const Path& path, const std::string& name) {
    const std::vector<std::string> names = mapped(trace_importers(), &TraceImporter::name);
    if (!name.empty())
        return trace_importers()[known_place(name, names,
                                             "trace format " + in_quotes(name) + " is not known")];
    std::string file = path.filename().string();
    for (const std::string_view compressed : {".gz", ".xz", ".bz2", ".zst"})
        if (file.ends_with(compressed)) file.resize(file.size() - compressed.size());
    for (const Foreign& foreign : foreign_files)
        if (file.ends_with(foreign.ending) && std::filesystem::exists(path))
            throw UserError(path.string() + ": is " + std::string(foreign.is));
    if (const TraceImporter* entry = recognised_trace(path)) return *entry;
    constexpr std::size_t looked_at = 4096;
    if (const std::string kind = kind_of_text(decompressed(path, expected, looked_at)); !kind.empty())
        throw UserError(path.string() + ": is " + kind);
    if (holds(file, ".json")) require_kind(read_json_trace(path), path.string(), FileKind::chrome_trace);
    throw UserError(path.string() + ": is of no known trace format" + suggestion("", names));
}

}  // namespace overlap
