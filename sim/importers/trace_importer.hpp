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

#include "sim/core/timeline_json.hpp"

namespace overlap {

/// Something that a profiler saw on a GPU, on the profiler's clock.
struct RecordedSpan {
    std::string name;  ///< of the kernel or copy, as recorded
    TaskKind kind = TaskKind::gemm;
    std::int64_t gpu = 0;
    std::string track;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::optional<std::int64_t> step = {};  ///< number of the profiler's step that launched it
    int clock = 0;                          ///< times of one clock can be compared; see merged
};

/// Latest time of a span, of the year 2096: sums of a time and a duration stay within 64 bits.
inline constexpr std::int64_t latest_recorded_ns = 4'000'000'000'000'000'000;
/// What is wrong with a span, whatever the format it was read from; empty where nothing is. Checks the number
/// of the GPU, the range of both times, and that the end is not before the start.
std::string problem_of(const RecordedSpan& span);

/// What a file holds, in our words.
struct RecordedTrace {
    std::vector<RecordedSpan> spans;
    std::string recorded_by;  ///< "PyTorch profiler (Kineto)"
    /// Numbers of GPUs are those of agents, CPUs among them: the GPUs in use are to be counted from 0.
    bool gpus_are_agents = false;
    /// The file is of one process of several, whose clock is not that of the others (to tens of
    /// microseconds).
    bool own_clock = false;
    /// Kernels and copies that are none of our kinds of task, and how often each occurs.
    std::map<std::string, std::size_t> not_mapped;

    /// Adds a span of `kind`, or counts its name where there is none. Calls `fail(message)`, which throws an
    /// error with the place, for a span that can't be.
    template <class Fail>
    void add(RecordedSpan span, std::optional<TaskKind> kind, Fail&& fail) {
        if (!kind) {
            ++not_mapped[span.name];
            return;
        }
        span.kind = *kind;
        if (const std::string problem = problem_of(span); !problem.empty()) fail(problem);
        spans.push_back(std::move(span));
    }
};

/// Reads one format of trace; adds spans by RecordedTrace::add. Throws UserError, one line with file and
/// place, for what it can't read.
class TraceImporter {
public:
    virtual ~TraceImporter() = default;
    virtual RecordedTrace read(const std::filesystem::path& path) const = 0;
};

struct TraceImporterEntry {
    std::string name;
    std::string description;
    /// Whether a file is of this format; looks at its name and its beginning.
    bool (*recognises)(const std::filesystem::path& path, std::string_view head);
    std::unique_ptr<TraceImporter> (*make)();
};
const std::vector<TraceImporterEntry>& trace_importers();

/// The importer that recognises the file, or null. Throws UserError where the file can't be read.
const TraceImporterEntry* recognised_trace(const std::filesystem::path& path);
/// The importer that recognises the file, or the named one. Throws UserError with the formats that are known.
const TraceImporterEntry& find_trace_importer(const std::filesystem::path& path, const std::string& name);

/// Spans of all files of one run (a rank each, or kernels and copies apart), GPUs counted from 0 and each
/// with its clock. Throws UserError where two files with clocks of their own have spans of one GPU.
std::vector<RecordedSpan> merged(std::span<const RecordedTrace> traces);
/// Spans on one timeline, all clocks taken for the same; time 0 is the start of the first span.
Timeline timeline_of(std::span<const RecordedSpan> spans);
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
