#include "sim/commands/import_traces.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <set>
#include <sstream>

#include "models/cost_model_registry.hpp"
#include "sim/commands/import_scenario.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/operators.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/importers/told_apart.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

/// The traces below a folder, all of one format; measured cases are skipped.
std::vector<fs::path> traces_below(const std::string& folder) {
    std::map<std::string, std::vector<fs::path>> by_format;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file()) continue;
        const TraceImporter* format = recognised_trace(entry.path());
        if (format != nullptr && format->name != "own") by_format[format->name].push_back(entry.path());
    }
    if (by_format.empty())
        throw UserError(folder + ": has no trace in it, expected traces of one run (sim import --help)");
    if (by_format.size() > 1)
        throw UserError(folder + ": has traces of several formats, among them " +
                        by_format.begin()->second.front().string() + " (" + by_format.begin()->first +
                        ") and " + by_format.rbegin()->second.front().string() + " (" +
                        by_format.rbegin()->first + "); name the files of one run");
    std::vector<fs::path> files = std::move(by_format.begin()->second);
    std::ranges::sort(files);
    return files;
}

std::vector<RecordedTrace> read_traces(const TraceFlags& flags) {
    KernelTable kernels;
    kernels.add(ConfigFolder::standard().folder("kernels.json"));
    if (!flags.kernels.empty()) kernels.add(flags.kernels);
    std::vector<RecordedTrace> traces;
    for (const std::string& given : flags.files) {
        const std::vector<fs::path> files =
            fs::is_directory(given) ? traces_below(given) : std::vector<fs::path>{given};
        for (const fs::path& file : files) {
            traces.push_back(find_trace_importer(file, flags.format).read(file, kernels));
            traces.back().file = file.string();
        }
    }
    return traces;
}

std::string table_of(const Iterations& found, const std::vector<std::size_t>& chosen) {
    std::ostringstream out;
    out << found.all.size() << " iterations, by " << found.found_by << std::fixed << std::setprecision(1)
        << "\n  number  makespan_us  starts apart_us\n";
    for (std::size_t i = 0; i < found.all.size(); ++i) {
        const bool taken = contains(chosen, i);
        out << std::setw(8) << i << std::setw(13) << to_microseconds(found.all[i].timeline().end())
            << std::setw(17) << to_microseconds(found.all[i].starts_apart()) << (taken ? "" : "  left out")
            << '\n';
    }
    if (found.outside > 0) out << "  " << found.outside << " spans are in no iteration\n";
    return out.str();
}

std::vector<std::size_t> chosen_of(const TraceFlags& flags, const Iterations& found) {
    const std::size_t count = found.all.size();
    if (flags.iteration.empty() || flags.iteration == "steady") return steady_iterations(found.all);
    const auto number = parsed<std::size_t>(flags.iteration);
    if (!number || *number >= count)
        throw UserError("--iteration is '" + flags.iteration + "', expected steady, all" +
                        (count > 1 ? ", or 0 to " + std::to_string(count - 1) : " or 0") +
                        " (what was found in " + flags.files.front() + ")");
    return {*number};
}

/// A kernel's name without the arguments of its template and its function, which do not make another kind.
std::string kind_of_kernel(const std::string& name) {
    static const std::string unnamed = "(anonymous namespace)";
    for (std::size_t at = 0; at < name.size(); ++at) {
        if (name.compare(at, unnamed.size(), unnamed) == 0)
            at += unnamed.size() - 1;
        else if (at > 0 && (name[at] == '<' || name[at] == '('))
            return name.substr(0, at);
    }
    return name;
}

/// The iteration with the GEMM's shape of a recognised pair, where the trace has none.
Iteration with_shape(Iteration iteration, const Recognised& found) {
    if (!found.config.is_object() || !found.config.at("workload").contains("gemm")) return iteration;
    const Json& gemm = found.config.at("workload").at("gemm");
    const std::int64_t m = gemm.at("m"), n = gemm.at("n"), k = gemm.at("k");
    if (found.config.at("params").value("algorithm", "") != "library" ||
        gemm.at("dtype") != name_of(DType::bf16))
        return iteration;
    const auto op = std::make_shared<const RecordedOperator>(RecordedOperator{"mm", {{m, k}, {k, n}}, {}});
    for (RecordedSpan& span : iteration.spans)
        if (span.kind == TaskKind::gemm && !gemm_of(span)) span.launch.by = op;
    return iteration;
}

}  // namespace

void add_trace_flags(CLI::App& command, TraceFlags& flags) {
    command.add_option("--format", flags.format, "Trace format, if it can't be recognised");
    add_topology_flags(command, flags.topology,
                       "Machine of the recorded run, by default by the GPUs' name and number");
    command.add_option("--gemm", flags.gemm, "MxNxK of a recognised pair, if the trace has no shapes");
    command.add_option("--kernels", flags.kernels,
                       "Table of kernels (JSON) that is asked before configs/kernels.json");
    command
        .add_option(
            "--collective", flags.collective,
            "What collectives do whose kernels have one name for all (RCCL's ncclDevKernel_Generic), where the "
            "trace does not tell")
        ->check(CLI::IsMember(std::vector<std::string>(collective_names.begin(), collective_names.end())));
    add_iteration_flags(command, flags);
}

std::vector<CLI::Option*> add_iteration_flags(CLI::App& command, TraceFlags& flags) {
    constexpr const char* spreads = " a trace of one GPU is spread over; default 1";
    const CLI::Range gpus(std::int64_t{1}, std::int64_t{65536});
    CLI::Option* tp =
        command.add_option("--tp", flags.tp, std::string("GPUs of a tensor-parallel group that") + spreads)
            ->check(gpus);
    CLI::Option* dp =
        command.add_option("--dp", flags.dp, std::string("Data-parallel groups that") + spreads)->check(gpus);
    CLI::Option* sequence =
        command.add_flag("--sequence-parallel", flags.sequence_parallel,
                         "With --tp: all-gathers and reduce-scatters instead of all-reduces");
    sequence->needs(tp);
    return {
        tp, dp, sequence,
        command
            .add_option(
                "--peer-copies", flags.peer_copies,
                "Copies whose GPUs are not recorded (ROCm) that are between two GPUs: by_rate (the default; "
                "those no faster than a link), all, none")
            ->check(
                CLI::IsMember(std::vector<std::string>(peer_copies_names.begin(), peer_copies_names.end()))),
        command.add_option(
            "--iteration", flags.iteration,
            "Iterations of the recording to take: steady (the default; leaves out those far above the "
            "median), the number of one, from 0, or all (the whole recording as one run)")};
}

std::string trace_formats() {
    std::string formats;
    for (const TraceImporter& entry : trace_importers())
        formats += "\n" + entry.name + ": " + entry.description;
    return formats;
}

RecordedRun read_recording(const TraceFlags& flags) {
    RecordedRun recording;
    recording.traces = read_traces(flags);
    name_collectives(recording.traces, flags.collective, recording.notes);
    tell_peer_copies(recording.traces,
                     static_cast<PeerCopyRule>(place_of(peer_copies_names, flags.peer_copies)),
                     recording.notes);
    recording.spans = merged(recording.traces, &recording.notes);
    if (recording.spans.empty()) throw UserError(flags.files.front() + ": has no GPU kernel or copy");
    std::set<std::int64_t> gpus;
    for (const RecordedSpan& span : recording.spans) gpus.insert(span.gpu);
    recording.seen = static_cast<std::int64_t>(gpus.size());
    recording.ranks = ranks_of(recording.traces, recording.spans);
    if (flags.spreads() && recording.ranks > 1)
        throw UserError("command line: --tp and --dp spread a trace of one GPU, but " + flags.files.front() +
                        " is of a job of " + std::to_string(recording.ranks));
    if (flags.spreads())
        recording.is_spread = true, recording.ranks = flags.tp * flags.dp;
    else if (!flags.topology.empty())
        recording.ranks =
            std::max<std::int64_t>(recording.ranks, ConfigFolder::standard().topology(flags.topology).gpus());
    for (const RecordedTrace& trace : recording.traces)
        if (recording.device.empty()) recording.device = trace.device;
    return recording;
}

std::string RecordedRun::summary() const {
    const Seconds lasted = timeline_of(spans).end();
    std::string text = std::to_string(spans.size()) + (spans.size() == 1 ? " span of " : " spans of ") +
                       std::to_string(seen) + (seen == 1 ? " GPU" : " GPUs");
    if (seen < ranks)
        text += is_spread ? ", to be spread over " + std::to_string(ranks) + ","
                          : " of " + std::to_string(ranks) + ", of which the others are taken to be like " +
                                (seen == 1 ? "it," : "these,");
    return text + " over " + fixed(to_microseconds(lasted), 1) + " us, from " + traces.front().recorded_by;
}

std::string RecordedRun::not_mapped_text() const {
    constexpr std::size_t most = 10;
    std::map<std::string, RecordedTrace::NotMapped> kinds;
    double all_ns = 0;
    for (const RecordedSpan& span : spans) all_ns += static_cast<double>(span.end_ns - span.start_ns);
    for (const RecordedTrace& trace : traces)
        for (const auto& [name, one] : trace.not_mapped) {
            RecordedTrace::NotMapped& kind = kinds[kind_of_kernel(name)];
            kind.count += one.count;
            kind.ns += one.ns;
        }
    std::vector<std::pair<std::string, RecordedTrace::NotMapped>> sorted(kinds.begin(), kinds.end());
    std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    std::ostringstream out;
    out << std::fixed << std::setprecision(1);
    for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i)
        out << "not mapped  " << sorted[i].second.count << " x " << one_line(sorted[i].first) << ", "
            << 100 * static_cast<double>(sorted[i].second.ns) / std::max(1.0, all_ns)
            << " % of the time, which they keep\n";
    if (sorted.size() > most) out << "not mapped  " << sorted.size() - most << " more kinds\n";
    return out.str();
}

std::vector<Timeline> ChosenIterations::runs() const {
    return mapped(chosen, [&](std::size_t number) { return all[number].timeline(); });
}

const Iteration& ChosenIterations::median() const {
    std::vector<std::size_t> sorted = chosen;
    std::ranges::stable_sort(sorted, {}, [&](std::size_t number) { return all[number].timeline().end(); });
    return all[sorted[(sorted.size() - 1) / 2]];
}

ChosenIterations choose_iterations(const TraceFlags& flags, const RecordedRun& recording,
                                   std::optional<std::size_t> gemms) {
    ChosenIterations result;
    if (flags.iteration == "all") {
        Iteration whole{"0", recording.spans};
        for (RecordedSpan& span : whole.spans) span.clock = 0;
        result.all.push_back(std::move(whole));
        result.chosen = {0};
        return result;
    }
    Iterations found = find_iterations(recording.spans, gemms);
    Seconds clipped;
    for (Iteration& one : found.all) clipped = std::max(clipped, clip_start_skew(one));
    result.chosen = chosen_of(flags, found);
    if (!found.found_by.empty()) result.text += table_of(found, result.chosen);
    if (clipped > microseconds(1))
        result.text += "start skew  ranks waited up to " +
                       std::to_string(std::llround(to_microseconds(clipped))) +
                       " us in the first barrier or collective of an iteration; clipped\n";
    if (!found.doubt.empty()) result.text += "doubtful    " + found.doubt + "\n";
    result.ambiguous = found.ambiguous;
    result.all = std::move(found.all);
    return result;
}

std::string topology_for(const TraceFlags& flags, const RecordedRun& recording, std::int64_t gpus,
                         const ConfigFolder& folder) {
    return !flags.topology.empty() ? flags.topology
                                   : topology_of(recording.device, static_cast<int>(gpus), folder);
}

HasPrice gemm_prices(const std::string& topology, const ConfigFolder& folder) {
    if (topology.empty()) return nullptr;
    std::set<DType> types;
    for (const auto& [type, parameters] : folder.machine(topology).calibration.gemm) types.insert(type);
    return [types](const GemmShape& gemm) { return types.contains(gemm.dtype); };
}

RecordedList spread_list(const TraceFlags& flags, const RecordedRun& recording, const Iteration& iteration,
                         Prices prices, const ConfigFolder& folder, std::vector<std::string>& notes) {
    const std::string topology = topology_for(flags, recording, recording.ranks, folder);
    const HasPrice has_price = gemm_prices(topology, folder);
    Iteration shaped = iteration;
    const bool has_shapes = std::ranges::any_of(
        iteration.spans, [](const RecordedSpan& span) { return gemm_of(span).has_value(); });
    if (recording.ranks > 1 && !flags.spreads() && !has_shapes)
        shaped = with_shape(iteration, recognised_run(flags, recording, iteration, folder));
    RecordedList list = list_of(shaped.spans, flags.spreads() ? 1 : recording.ranks, prices, has_price);
    Spread how{flags.tp, flags.dp, flags.sequence_parallel};
    std::optional<Machine> machine;
    if (!topology.empty()) machine.emplace(folder.machine(topology));
    if (machine)
        how.share = [&](const GemmShape& part, const GemmShape& whole) {
            if (!has_price(whole)) return part.flops() / whole.flops();
            const CostModels models;
            const auto time = [&](const GemmShape& gemm) {
                return isolated_time(models.cost({.work = gemm}, *machine), machine->resources);
            };
            return time(part) / time(whole);
        };
    spread(list, how);
    list.spans.clear();  // they end with this function
    append(notes, list.notes);
    return list;
}

Recognised recognised_run(const TraceFlags& flags, const RecordedRun& recording, const Iteration& iteration,
                          const ConfigFolder& folder) {
    RecogniseOptions options{.ranks = recording.ranks};
    if (!flags.gemm.empty()) options.gemm = parse_shape(flags.gemm, "command line: --gemm");
    const std::string topology = topology_for(flags, recording, recording.ranks, folder);
    if (!topology.empty())
        options.guess = [&](const ShapeHint& hint) { return guessed_shape(hint, folder.machine(topology)); };
    options.has_price = gemm_prices(topology, folder);
    return recognise(iteration.spans, options);
}

}  // namespace overlap
