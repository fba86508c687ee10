#pragma once

#include <CLI/CLI.hpp>

#include "sim/importers/iterations.hpp"
#include "sim/importers/recognise.hpp"
#include "sim/importers/spread_list.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// Flags of the commands that read traces.
struct TraceFlags {
    std::vector<std::string> files;
    std::string format, iteration, topology, gemm, kernels, collective, peer_copies = "by_rate";
    std::vector<std::string> other_topologies;
    std::int64_t tp = 1, dp = 1;
    bool sequence_parallel = false;

    /// Whether the trace of one GPU is spread over several.
    bool spreads() const { return tp * dp > 1; }
};
void add_trace_flags(CLI::App& command, TraceFlags& flags);
/// Those that no command has in another meaning.
std::vector<CLI::Option*> add_iteration_flags(CLI::App& command, TraceFlags& flags);
/// What `sim import --help` says of formats.
std::string trace_formats();

/// What was recorded, and what was decided about it.
struct RecordedRun {
    std::vector<RecordedTrace> traces;
    std::vector<RecordedSpan> spans;  ///< at least one
    std::int64_t ranks = 1;           ///< GPUs of the job
    std::int64_t seen = 1;            ///< of these in the files
    bool is_spread = false;           ///< whether a trace of one GPU is spread over `ranks`
    std::string device;               ///< name of the GPUs; empty if not recorded
    std::vector<std::string> notes;   ///< a line each

    /// "897 spans of 1 GPU (rank 0 of 8) over 21167 us, from PyTorch profiler"
    std::string summary() const;
    /// One line for each kind of kernel that has no place in the table, the longest first.
    std::string not_mapped_text() const;
};
/// Throws UserError for files that can't be read, or hold no activity of a GPU.
RecordedRun read_recording(const TraceFlags& flags);

/// The iterations of a recording that `flags` choose: the given one, all as one, or by default the steady ones.
struct ChosenIterations {
    std::vector<Iteration> all;
    std::vector<std::size_t> chosen;
    std::string text;        ///< lines for people
    bool ambiguous = false;  ///< whether they may be parts of one run

    std::vector<Timeline> runs() const;
    /// The chosen one with the median makespan.
    const Iteration& median() const;
};
ChosenIterations choose_iterations(const TraceFlags& flags, const RecordedRun& recording,
                                   std::optional<std::size_t> gemms);

/// The machine that --topology names, else that of so many GPUs of the recorded name; empty if none is known.
std::string topology_for(const TraceFlags& flags, const RecordedRun& recording, std::int64_t gpus,
                         const ConfigFolder& folder);
/// Whether the machine of a topology has prices for GEMMs of a number format; of none, null.
HasPrice gemm_prices(const std::string& topology, const ConfigFolder& folder);
/// The list of an iteration, spread as `flags` say. Appends to `notes` what was decided.
RecordedList spread_list(const TraceFlags& flags, const RecordedRun& recording, const Iteration& iteration,
                         Prices prices, const ConfigFolder& folder, std::vector<std::string>& notes);
/// What the iteration shows, by `topology_for` of it.
Recognised recognised_run(const TraceFlags& flags, const RecordedRun& recording, const Iteration& iteration,
                          const ConfigFolder& folder);

}  // namespace overlap
