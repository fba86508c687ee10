#include <algorithm>
#include <cmath>
#include <iomanip>
#include <memory>
#include <numeric>
#include <sstream>

#include "sim/commands/commands.hpp"
#include "sim/commands/import_scenario.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/median.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/core/timeline_json.hpp"
#include "sim/importers/iterations.hpp"
#include "sim/importers/recognise.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

struct ImportFlags {
    std::vector<std::string> files;
    std::string out, format, scenario, iteration, topology, gemm, kernels, out_scenario, system = "imported";
};

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

std::vector<RecordedTrace> read_traces(const ImportFlags& flags) {
    KernelTable kernels;
    kernels.add(ConfigFolder::standard().folder("kernels.json"));
    if (!flags.kernels.empty()) kernels.add(flags.kernels);
    std::vector<RecordedTrace> traces;
    for (const std::string& given : flags.files) {
        const std::vector<fs::path> files =
            fs::is_directory(given) ? traces_below(given) : std::vector<fs::path>{given};
        for (const fs::path& file : files)
            traces.push_back(find_trace_importer(file, flags.format).read(file, kernels));
    }
    return traces;
}

/// The iterations chosen by `--iteration`: the given one, all as one, or by default the steady ones.
std::vector<std::size_t> chosen_iterations(const ImportFlags& flags, const Iterations& found) {
    const std::size_t count = found.all.size();
    if (flags.iteration.empty() || flags.iteration == "steady") return steady_iterations(found.all);
    const auto number = parsed<std::size_t>(flags.iteration);
    if (!number || *number >= count)
        throw UserError("--iteration is '" + flags.iteration + "', expected steady, all" +
                        (count > 1 ? ", or 0 to " + std::to_string(count - 1) : " or 0") +
                        " (what was found in " + flags.files.front() + ")");
    return {*number};
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

/// Makespans, and the spans of the run with the median makespan, with names by `scenario` if there is one.
void put_runs(Json& measured, const std::vector<Timeline>& runs, const std::optional<Scenario>& scenario,
              std::string& text) {
    std::vector<std::size_t> by_makespan(runs.size());
    std::iota(by_makespan.begin(), by_makespan.end(), 0);
    std::ranges::sort(by_makespan, {}, [&](std::size_t run) { return runs[run].end(); });
    measured["makespan_us"] = to_microseconds(median(mapped(runs, &Timeline::end)));
    const Timeline& shown = runs[by_makespan[(runs.size() - 1) / 2]];
    if (runs.size() > 1) {
        measured["recorded_makespan_us"] = to_microseconds(shown.end());
        for (const Timeline& run : runs) measured["samples_us"].push_back(to_microseconds(run.end()));
    }
    measured["spans"] = spans_json(scenario ? with_names_of(*scenario, shown, text) : shown);
}

std::size_t gemms_a_gpu(const Scenario& scenario) {
    const TaskGraph graph = scenario.graph();
    std::size_t gemms = 0;
    for (TaskId id = 0; id < graph.size(); ++id) gemms += graph[id].kind() == TaskKind::gemm;
    return gemms / static_cast<std::size_t>(scenario.machine->topology.gpus());
}

/// The run config that the recording shows, with the machine's topology; null, and why, if it shows none.
Json recognised_config(const ImportFlags& flags, const Iteration& iteration,
                       const std::vector<RecordedTrace>& traces, std::string& text) {
    std::optional<GemmShape> gemm;
    if (!flags.gemm.empty()) gemm = parse_shape(flags.gemm, "command line: --gemm");
    const int gpus = iteration.timeline().gpus();
    const ConfigFolder folder = ConfigFolder::standard();
    const std::string topology =
        !flags.topology.empty() ? flags.topology : topology_of(traces.front().device, gpus, folder);
    ShapeGuess guess;
    if (!topology.empty())
        guess = [&](const ShapeHint& hint) { return guessed_shape(hint, folder.machine(topology)); };
    const Recognised found = recognise(iteration.spans, gemm, guess);
    if (found.what.empty()) {
        text += "recognised  nothing: " + found.why_not + "\n";
        return {};
    }
    text += "recognised  " + found.what + "\n";
    for (const std::string& note : found.notes) text += "            " + one_line(note) + "\n";
    Json config = found.config;
    config["topology"] = topology;
    if (topology.empty()) {
        text += "            no topology of " + std::to_string(gpus) + " x " +
                (traces.front().device.empty() ? "GPUs without a name" : one_line(traces.front().device)) +
                " is known: give --topology\n";
        return {};
    }
    return config;
}

/// One line for each kind of kernel that has no place in the table, the longest first.
std::string not_mapped_text(const std::vector<RecordedTrace>& traces) {
    constexpr std::size_t most = 10;
    std::map<std::string, RecordedTrace::NotMapped> kinds;
    double all_ns = 0;
    for (const RecordedTrace& trace : traces) {
        for (const RecordedSpan& span : trace.spans)
            all_ns += static_cast<double>(span.end_ns - span.start_ns);
        for (const auto& [name, one] : trace.not_mapped) {
            // A template's arguments and a function's do not make another kind.
            RecordedTrace::NotMapped& kind =
                kinds[name.substr(0, std::max<std::size_t>(1, name.find_first_of("<(", 5)))];
            kind.count += one.count;
            kind.ns += one.ns;
            all_ns += static_cast<double>(one.ns);
        }
    }
    std::vector<std::pair<std::string, RecordedTrace::NotMapped>> sorted(kinds.begin(), kinds.end());
    std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    std::ostringstream out;
    out << std::fixed << std::setprecision(1);
    for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i)
        out << "not mapped  " << sorted[i].second.count << " x " << one_line(sorted[i].first) << ", "
            << 100 * static_cast<double>(sorted[i].second.ns) / std::max(1.0, all_ns) << " % of the time\n";
    if (sorted.size() > most) out << "not mapped  " << sorted.size() - most << " more kinds\n";
    return out.str();
}

void execute(const ImportFlags& flags) {
    std::vector<std::filesystem::path> inputs(flags.files.begin(), flags.files.end());
    inputs.emplace_back(flags.scenario);
    require_outputs(std::vector<std::filesystem::path>{flags.out, flags.out_scenario}, inputs);
    const std::vector<RecordedTrace> traces = read_traces(flags);
    const std::string& recorded_by = traces.front().recorded_by;
    Json measured{{"schema", 1}, {"system", flags.system}, {"source", recorded_by}}, config;
    std::optional<std::size_t> gemms;
    std::optional<Scenario> scenario;
    if (!flags.scenario.empty()) {
        config = read_json_file(flags.scenario);
        require_kind(config, flags.scenario, FileKind::run_config);
        scenario = resolve(read_run_config(config, flags.scenario), ConfigFolder::standard());
        gemms = gemms_a_gpu(*scenario);
        if (*gemms == 0) gemms.reset();
    }
    const std::vector<RecordedSpan> spans = merged(traces);
    if (spans.empty()) throw UserError(flags.files.front() + ": has no GPU kernel or copy of a known kind");
    const Timeline whole = timeline_of(spans);
    std::string text = std::to_string(spans.size()) + " spans of " + std::to_string(whole.gpus()) +
                       " GPUs over " + std::to_string(to_microseconds(whole.end())) + " us, from " +
                       recorded_by + "\n";
    std::vector<Timeline> runs;
    if (flags.iteration == "all") {
        runs.push_back(whole);
        if (config.is_null()) config = recognised_config(flags, {"0", spans}, traces, text);
    } else {
        Iterations found = find_iterations(spans, gemms);
        Seconds clipped;
        for (Iteration& one : found.all) clipped = std::max(clipped, clip_start_skew(one));
        const std::vector<std::size_t> chosen = chosen_iterations(flags, found);
        for (const std::size_t number : chosen) runs.push_back(found.all[number].timeline());
        if (!found.found_by.empty()) text += table_of(found, chosen);
        if (clipped > microseconds(1))
            text += "start skew  ranks waited up to " +
                    std::to_string(std::llround(to_microseconds(clipped))) +
                    " us in the first barrier or collective of an iteration; clipped\n";
        if (!found.doubt.empty()) text += "doubtful    " + found.doubt + "\n";
        if (config.is_null()) {
            if (found.ambiguous)
                text += "doubtful    the kernels that repeat may be parts of one run: then --iteration all\n";
            config = recognised_config(flags, found.all[chosen.front()], traces, text);
        }
    }
    if (!config.is_null() && !scenario) {
        try {
            scenario = resolve(read_run_config(config, "recognised scenario"), ConfigFolder::standard());
        } catch (const UserError& refused) {
            text += "            which does not run: " + std::string(refused.what()) + "\n";
        }
    }
    if (scenario) measured["scenario"] = config;
    put_runs(measured, runs, scenario, text);
    write_file_atomically(flags.out, json_text(measured) + "\n");
    if (!flags.out_scenario.empty() && scenario)
        write_file_atomically(flags.out_scenario, json_text(config, 2) + "\n");
    text += not_mapped_text(traces);
    text += "measured case of " + std::to_string(runs.size()) + (runs.size() == 1 ? " run, " : " runs, ") +
            std::to_string(measured["makespan_us"].get<double>()) + " us\n";
    print(text);
}

}  // namespace

void add_import_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand("import", "Make a measured case of a profiler's trace");
    auto flags = std::make_shared<ImportFlags>();
    std::string formats;
    for (const TraceImporter& entry : trace_importers())
        formats += "\n" + entry.name + ": " + entry.description;
    command
        ->add_option(
            "files", flags->files,
            "Traces of one recording (one file a rank, or kernels and copies in separate files), or a "
            "folder of them." +
                formats)
        ->required();
    command->add_option("--out", flags->out, "File of the measured case to write (JSON)")->required();
    command->add_option("--format", flags->format, "Trace format, if it can't be recognised");
    command->add_option(
        "--scenario", flags->scenario,
        "Run config of the recorded run; default: the run that sim import recognises in the trace");
    command->add_option("--topology", flags->topology,
                        "Machine of a recognised run; default: by the GPUs' name and number");
    command->add_option("--gemm", flags->gemm, "MxNxK of a recognised pair, if the trace has no shapes");
    command->add_option("--kernels", flags->kernels,
                        "Table of kernels (JSON) that is asked before configs/kernels.json");
    command->add_option("--out-scenario", flags->out_scenario,
                        "File of the recognised run config to write (JSON)");
    command->add_option(
        "--iteration", flags->iteration,
        "Iterations of the recording to take: steady (the default; leaves out those far above the "
        "median), the number of one, from 0, or all (the whole recording as one run)");
    command->add_option("--system", flags->system,
                        "Name of the machine in the measured case; default: imported");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
