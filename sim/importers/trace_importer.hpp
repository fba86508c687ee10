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
    std::string name;                                ///< "_allgather_base"
    std::int64_t in_elements = 0, out_elements = 0;  ///< of one rank
    std::string dtype;                               ///< "BFloat16"
    std::int64_t ranks = 0;
    std::vector<std::int64_t> members =
        {};  ///< ranks of its group; empty if not recorded, or not all of them
};

/// How an activity came onto a GPU; what was not recorded is empty.
struct RecordedLaunch {
    std::int64_t process = 0;          ///< where one file has several; else 0
    std::optional<std::int64_t> step;  ///< number of the profiler's step
    std::optional<std::int64_t> ns;    ///< when the host called what enqueued it
    std::shared_ptr<const RecordedOperator> by;
    /// From when until when the host waited for the GPU before that call, since its call before.
    std::vector<std::pair<std::int64_t, std::int64_t>> host_waits;
};

/// An activity that a profiler recorded on a GPU, on the profiler's clock.
struct RecordedSpan {
    std::string name = {};  ///< of the kernel or copy, as recorded
    TaskKind kind = TaskKind::gemm;
    std::int64_t gpu = 0;
    std::string track;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    int clock = 0;              ///< only times of the same clock are comparable; see merged
    double bytes = 0;           ///< of a copy; 0 if not recorded
    bool waits = false;         ///< a barrier or a collective: it ends when the last rank has come
    bool attention = false;     ///< a fused attention
    bool with_host = false;     ///< a copy from or to the host
    bool ends_unknown = false;  ///< a copy whose GPUs are not recorded: within one, or between two
    bool known = true;          ///< whether the table of kernels has it
    RecordedLaunch launch = {};
    std::shared_ptr<const RecordedCollective> collective = {};  ///< null if not recorded
};

/// Latest time of a span, in the year 2096: sums of a time and a duration fit into 64 bits.
inline constexpr std::int64_t latest_recorded_ns = 4'000'000'000'000'000'000;
/// The mistake in a span, in any format; empty if there is none. Checks the GPU's number, the range of both
/// times, and that the end is not before the start.
std::string problem_of(const RecordedSpan& span);

/// A call by which the host waits for the GPU.
struct HostWait {
    std::int64_t start_ns = 0, end_ns = 0, process = 0;
};
/// A call of a collective library, "ncclAllGather", at the host.
struct LibraryCall {
    std::string function;
    std::int64_t start_ns = 0;
};

/// What the numbers of GPUs in a file are.
enum class GpuNumbers {
    ranks,    ///< of the job
    devices,  ///< as the process counts them: those of two processes may be one number and two GPUs
    agents    ///< as the machine counts them, among CPUs
};

/// The contents of a file, independent of its format.
struct RecordedTrace {
    std::vector<RecordedSpan> spans;
    std::string recorded_by;  ///< "PyTorch profiler (Kineto)"
    std::string file = {};    ///< its name
    GpuNumbers gpu_numbers = GpuNumbers::devices;
    std::optional<std::int64_t> ranks = {};  ///< of the job, if recorded
    std::string machine = {};                ///< name of the node; empty if not recorded
    /// The file is from one of several processes, and its clock differs from the
    /// others' (by tens of microseconds).
    bool own_clock = false;
    bool clock_is_unknown =
        false;  ///< times begin with the file: only collectives tell how far apart two files are
    /// GPUs of (process, number) by their unique names, where recorded: one GPU may have several numbers.
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> gpu_names = {};
    std::vector<LibraryCall> calls = {};  ///< in the order of their starts
    /// Kernels that the table does not have. They are spans, too.
    struct NotMapped {
        std::size_t count = 0;
        std::int64_t ns = 0;  ///< of all of them
    };
    std::map<std::string, NotMapped> not_mapped;
    std::string device;  ///< name of the GPU, "NVIDIA H200"; empty if not recorded

    /// Adds a span of the kind in `use`; without one, as a kernel of unknown kind. For an invalid span calls
    /// `fail(message)`, which throws an error with the position.
    template <class Fail>
    void add(RecordedSpan span, const std::optional<KernelUse>& use, Fail&& fail) {
        if (const std::string problem = problem_of(span); !problem.empty()) fail(problem);
        if (!use) {
            NotMapped& one = not_mapped[span.name];
            ++one.count;
            one.ns += span.end_ns - span.start_ns;
        }
        const KernelUse is = use.value_or(KernelUse{TaskKind::memory_bound});
        span.kind = is.kind;
        span.waits = is.waits;
        span.attention = is.attention;
        span.known = use.has_value();
        spans.push_back(std::move(span));
    }
    /// Gives each wait of the host to the first span that was launched after it.
    void add_host_waits(std::vector<HostWait> waits);
};
/// A copy from or to the host: of the GPU's time, and of none of our kinds.
inline constexpr KernelUse host_copy{TaskKind::memory_bound};

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

/// The contents of a JSON file, compressed or not. Throws UserError.
Json read_json_trace(const std::filesystem::path& path);

/// The importer that recognises the file, or null. Throws UserError if the file can't be read.
const TraceImporter* recognised_trace(const std::filesystem::path& path);
/// The named importer, or the one that recognises the file. Throws UserError with the known formats.
const TraceImporter& find_trace_importer(const std::filesystem::path& path, const std::string& name);

/// Spans of all files of one run (one file a rank, or kernels and copies in separate files), with their clocks. GPUs
/// have the numbers of their ranks; where files name none, they are told apart by machine, process and number, and
/// numbered from 0. Clocks that begin with their files are moved until collectives end together. `notes`: what was
/// decided, a line each. Throws UserError if two files have one rank, are of different jobs, or if nothing tells how
/// far apart their clocks are.
std::vector<RecordedSpan> merged(std::span<const RecordedTrace> traces,
                                 std::vector<std::string>* notes = nullptr);
/// GPUs of the job that the files are of: as they say, else those that are in them.
std::int64_t ranks_of(std::span<const RecordedTrace> traces, std::span<const RecordedSpan> spans);
/// Spans on one timeline, assuming a common clock; time 0 is the start of the first span.
Timeline timeline_of(std::span<const RecordedSpan> spans);

}  // namespace overlap
