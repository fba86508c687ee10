#pragma once

#include <algorithm>
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
#include "sim/importers/kernel_table.hpp"

namespace overlap {

/// The operator of a framework that launched a kernel, with the shapes and types of its inputs if they were recorded.
struct RecordedOperator {
    std::string name;
    std::vector<std::vector<std::int64_t>> dims;  ///< empty for what is no tensor
    std::vector<std::string> types;               ///< "c10::BFloat16"
};

/// What the profiler says of a collective's kernel.
struct RecordedCollective {
    std::string name;                         ///< "_allgather_base"
    std::int64_t in_elements = 0, out_elements = 0;  ///< of one rank
    std::string dtype;                        ///< "BFloat16"
    std::int64_t ranks = 0;
};

/// An activity that a profiler recorded on a GPU, on the profiler's clock.
struct RecordedSpan {
    std::string name;  ///< of the kernel or copy, as recorded
    TaskKind kind = TaskKind::gemm;
    std::int64_t gpu = 0;
    std::string track;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::optional<std::int64_t> step = {};  ///< number of the profiler's step that launched it
    int clock = 0;                          ///< only times of the same clock are comparable; see merged
    double bytes = 0;                       ///< of a copy; 0 if not recorded
    bool waits = false;                     ///< a barrier or a collective: it ends when the last rank has come
    std::shared_ptr<const RecordedOperator> by = {};            ///< null if not recorded
    std::shared_ptr<const RecordedCollective> collective = {};  ///< null if not recorded
};

/// Latest time of a span, in the year 2096: sums of a time and a duration fit into 64 bits.
inline constexpr std::int64_t latest_recorded_ns = 4'000'000'000'000'000'000;
/// The mistake in a span, in any format; empty if there is none. Checks the GPU's number, the range of both
/// times, and that the end is not before the start.
std::string problem_of(const RecordedSpan& span);

/// The contents of a file, independent of its format.
struct RecordedTrace {
    std::vector<RecordedSpan> spans;
    std::string recorded_by;  ///< "PyTorch profiler (Kineto)"
    /// GPUs have the numbers of agents, which include CPUs: the GPUs in use must be renumbered from 0.
    bool gpus_are_agents = false;
    /// The file is from one of several processes, and its clock differs from the
    /// others' (by tens of microseconds).
    bool own_clock = false;
    /// Kernels and copies that are none of our kinds of task.
    struct NotMapped {
        std::size_t count = 0;
        std::int64_t ns = 0;  ///< of all of them
    };
    std::map<std::string, NotMapped> not_mapped;
    std::string device;  ///< name of the GPU, "NVIDIA H200"; empty if not recorded

    /// Adds a span of the kind in `use`; without one, counts its name. For an invalid span calls `fail(message)`,
    /// which throws an error with the position.
    template <class Fail>
    void add(RecordedSpan span, const std::optional<KernelUse>& use, Fail&& fail) {
        if (!use) {
            NotMapped& one = not_mapped[span.name];
            ++one.count;
            one.ns += std::max<std::int64_t>(0, span.end_ns - span.start_ns);
            return;
        }
        span.kind = use->kind;
        span.waits = use->waits;
        if (const std::string problem = problem_of(span); !problem.empty()) fail(problem);
        spans.push_back(std::move(span));
    }
};

struct TraceImporter {
    std::string name;
    std::string description;
    /// Whether a file has this format, judged by its name and its beginning.
    bool (*recognises)(const std::filesystem::path& path, std::string_view head);
    /// Reads a file of this format, by RecordedTrace::add. Throws UserError, one line with file and position, for
    /// unreadable content.
    RecordedTrace (*read)(const std::filesystem::path& path, const KernelTable& kernels);
};
const std::vector<TraceImporter>& trace_importers();

/// The importer that recognises the file, or null. Throws UserError if the file can't be read.
const TraceImporter* recognised_trace(const std::filesystem::path& path);
/// The named importer, or the one that recognises the file. Throws UserError with the known formats.
const TraceImporter& find_trace_importer(const std::filesystem::path& path, const std::string& name);

/// Spans of all files of one run (one file a rank, or kernels and copies in separate files),
/// with GPUs numbered from 0 and their clocks. Throws UserError if two files with different
/// clocks have spans of one GPU.
std::vector<RecordedSpan> merged(std::span<const RecordedTrace> traces);
/// Spans on one timeline, assuming a common clock; time 0 is the start of the first span.
Timeline timeline_of(std::span<const RecordedSpan> spans);

}  // namespace overlap
