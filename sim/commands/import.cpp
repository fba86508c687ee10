#include <algorithm>
#include <charconv>
#include <cmath>
#include <iomanip>
#include <memory>
#include <numeric>
#include <sstream>

#include "sim/commands/commands.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/shown.hpp"
#include "sim/core/timeline_json.hpp"
#include "sim/importers/iterations.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

struct ImportFlags {
    std::vector<std::string> files;
    std::string out, format, scenario, iteration, system = "imported";
};

/// The traces below a folder, all of one format; measured cases are skipped.
std::vector<fs::path> traces_below(const std::string& folder) {
    std::map<std::string, std::vector<fs::path>> by_format;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file()) continue;
        const TraceImporterEntry* format = recognised_trace(entry.path());
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
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<RecordedTrace> read_traces(const ImportFlags& flags) {
    std::vector<RecordedTrace> traces;
    for (const std::string& given : flags.files) {
        const std::vector<fs::path> files =
            fs::is_directory(given) ? traces_below(given) : std::vector<fs::path>{given};
        for (const fs::path& file : files)
            traces.push_back(find_trace_importer(file, flags.format).make()->read(file));
    }
    return traces;
}

/// The iterations chosen by `--iteration`: the given one, all as one, or by default the steady ones.
std::vector<std::size_t> chosen_iterations(const ImportFlags& flags, const Iterations& found) {
    const std::size_t count = found.all.size();
    if (flags.iteration.empty() && found.ambiguous) {
        std::string times;
        for (const Iteration& one : found.all)
            times += (times.empty() ? "" : ", ") +
                     std::to_string(std::llround(to_microseconds(one.timeline().end())));
        throw UserError(flags.files.front() + ": the same kernels come " + std::to_string(count) +
                        " times (" + times +
                        " us), runs or parts of one run: say which by --scenario, or by --iteration steady, "
                        "all, or 0 to " +
                        std::to_string(count - 1));
    }
    if (flags.iteration.empty() || flags.iteration == "steady") return steady_iterations(found.all);
    std::size_t number = 0;
    const char *const first = flags.iteration.data(), *const last = first + flags.iteration.size();
    const auto [end, error] = std::from_chars(first, last, number);
    if (error != std::errc() || end != last || number >= count)
        throw UserError("--iteration is '" + flags.iteration + "', expected steady, all" +
                        (count > 1 ? ", or 0 to " + std::to_string(count - 1) : " or 0") +
                        " (what was found in " + flags.files.front() + ")");
    return {number};
}

std::string table_of(const Iterations& found, const std::vector<std::size_t>& chosen) {
    std::ostringstream out;
    out << found.all.size() << " iterations, by " << found.found_by << std::fixed << std::setprecision(1)
        << "\n  number  makespan_us  starts apart_us\n";
    for (std::size_t i = 0; i < found.all.size(); ++i) {
        const bool taken = std::find(chosen.begin(), chosen.end(), i) != chosen.end();
        out << std::setw(8) << i << std::setw(13) << to_microseconds(found.all[i].timeline().end())
            << std::setw(17) << to_microseconds(found.all[i].starts_apart()) << (taken ? "" : "  left out")
            << '\n';
    }
    if (found.outside > 0) out << "  " << found.outside << " spans are in no iteration\n";
    return out.str();
}

Seconds median_of(const std::vector<Timeline>& runs, const std::vector<std::size_t>& by_makespan) {
    const std::size_t middle = runs.size() / 2;
    const Seconds upper = runs[by_makespan[middle]].end();
    return runs.size() % 2 == 1 ? upper : 0.5 * (runs[by_makespan[middle - 1]].end() + upper);
}

/// Makespans, and the spans of the run with the median makespan.
void put_runs(Json& measured, const std::vector<Timeline>& runs) {
    std::vector<std::size_t> by_makespan(runs.size());
    std::iota(by_makespan.begin(), by_makespan.end(), 0);
    std::sort(by_makespan.begin(), by_makespan.end(),
              [&](auto a, auto b) { return runs[a].end() < runs[b].end(); });
    measured["makespan_us"] = to_microseconds(median_of(runs, by_makespan));
    const Timeline& shown = runs[by_makespan[(runs.size() - 1) / 2]];
    if (runs.size() > 1) {
        measured["recorded_makespan_us"] = to_microseconds(shown.end());
        for (const Timeline& run : runs) measured["samples_us"].push_back(to_microseconds(run.end()));
    }
    measured["spans"] = spans_json(shown);
}

std::size_t gemms_a_gpu(const Scenario& scenario) {
    const TaskGraph graph = scenario.graph();
    std::size_t gemms = 0;
    for (TaskId id = 0; id < graph.size(); ++id) gemms += graph[id].kind() == TaskKind::gemm;
    return gemms / static_cast<std::size_t>(scenario.machine->topology.gpus());
}

void execute(const ImportFlags& flags) {
    require_writable(flags.out);
    const std::vector<RecordedTrace> traces = read_traces(flags);
    const std::string& recorded_by = traces.front().recorded_by;
    Json measured{{"schema", 1}, {"system", flags.system}, {"source", recorded_by}};
    std::optional<std::size_t> gemms;
    if (!flags.scenario.empty()) {
        const Json scenario = read_json_file(flags.scenario);
        require_kind(scenario, flags.scenario, FileKind::run_config);
        gemms = gemms_a_gpu(resolve(read_run_config(scenario, flags.scenario), ConfigFolder::standard()));
        if (gemms == 0) gemms.reset();
        measured["scenario"] = scenario;
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
    } else {
        const Iterations found = find_iterations(spans, gemms);
        const std::vector<std::size_t> chosen = chosen_iterations(flags, found);
        for (const std::size_t number : chosen) runs.push_back(found.all[number].timeline());
        if (!found.found_by.empty()) text += table_of(found, chosen);
        if (!found.doubt.empty()) text += "doubtful    " + found.doubt + "\n";
    }
    put_runs(measured, runs);
    write_file_atomically(flags.out, json_text(measured) + "\n");

    std::map<std::string, std::size_t> not_mapped;
    for (const RecordedTrace& trace : traces)
        for (const auto& [name, count] : trace.not_mapped) not_mapped[name] += count;
    for (const auto& [name, count] : not_mapped)
        text += "not mapped  " + std::to_string(count) + " x " + one_line(name) + "\n";
    text += "measured case of " + std::to_string(runs.size()) + (runs.size() == 1 ? " run, " : " runs, ") +
            std::to_string(measured["makespan_us"].get<double>()) + " us\n";
    print(text);
}

}  // namespace

void add_import_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand("import", "Make a measured case of a profiler's trace");
    auto flags = std::make_shared<ImportFlags>();
    std::string formats;
    for (const TraceImporterEntry& entry : trace_importers())
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
        "Run config of the recorded run; sim compare needs it, and it helps to find the runs in "
        "a recording of several");
    command->add_option("--iteration", flags->iteration,
                        "Which runs of a recording to take: steady (all but those far above the median; the "
                        "default), a number from 0, or all (the whole recording as one run)");
    command->add_option("--system", flags->system, "Name of the machine; default imported");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
