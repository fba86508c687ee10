#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/timeline.hpp"

namespace overlap {

/// Something that a profiler saw on a GPU, on the profiler's clock.
struct RecordedSpan {
    std::string name;  ///< of the kernel or copy, as recorded
    TaskKind kind = TaskKind::gemm;
    int gpu = 0;
    std::string track;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
};

/// What a file holds, in our words.
struct RecordedTrace {
    std::vector<RecordedSpan> spans;
    std::string recorded_by;  ///< "PyTorch profiler (Kineto)"
    /// Numbers of GPUs are those of agents, CPUs among them: the GPUs in use are to be counted from 0.
    bool gpus_are_agents = false;
    /// Kernels and copies that are none of our kinds of task, and how often each occurs.
    std::map<std::string, std::size_t> not_mapped;
};

/// Reads one format of trace. Throws UserError, one line with file and place, for what it can't read.
class TraceImporter {
public:
    virtual ~TraceImporter() = default;
    virtual RecordedTrace read(const std::filesystem::path& path) const = 0;
};

struct TraceImporterEntry {
    std::string name;
    std::string description;
    /// Whether a file is of this format; looks at its name and its first bytes.
    bool (*recognises)(const std::filesystem::path& path, std::string_view head);
    std::unique_ptr<TraceImporter> (*make)();
};
const std::vector<TraceImporterEntry>& trace_importers();

/// The importer that recognises the file, or the named one. Throws UserError with the formats that are known.
const TraceImporterEntry& find_trace_importer(const std::filesystem::path& path, const std::string& name);

/// Files of one run (a rank each, or kernels and copies apart) on one timeline; time 0 is the start of the
/// first span.
Timeline timeline_of(std::span<const RecordedTrace> traces);

/// The kind of task that a kernel of this name does, or none: library GEMMs (cuBLAS, hipBLASLt/Tensile,
/// CUTLASS, Triton matmuls), collectives (NCCL, RCCL), element-wise kernels of PyTorch.
std::optional<TaskKind> kind_of_kernel(std::string_view name);

std::unique_ptr<TraceImporter> make_kineto_importer();
std::unique_ptr<TraceImporter> make_nsight_importer();
std::unique_ptr<TraceImporter> make_rocprof_csv_importer();
std::unique_ptr<TraceImporter> make_rocprof_json_importer();
std::unique_ptr<TraceImporter> make_own_importer();

}  // namespace overlap
