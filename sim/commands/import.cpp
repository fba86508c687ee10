#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "sim/commands/commands.hpp"
#include "sim/commands/import_scenario.hpp"
#include "sim/commands/import_traces.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/median.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/core/timeline_json.hpp"
#include "sim/importers/recorded_list.hpp"
#include "sim/report/text_format.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

struct ImportFlags : TraceFlags {
    std::string out, scenario, out_scenario, out_workload, system = "imported";
    bool priced = false;
};

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
Json recognised_config(const ImportFlags& flags, const RecordedRun& recording, const Iteration& iteration,
                       std::string& text) {
    const ConfigFolder folder = ConfigFolder::standard();
    const Recognised found = recognised_run(flags, recording, iteration, folder);
    if (found.what.empty()) {
        text += "recognised  nothing: " + one_line(found.why_not) + "\n";
        return {};
    }
    text += "recognised  " + found.what + "\n";
    for (const std::string& note : found.notes) text += "            " + one_line(note) + "\n";
    Json config = found.config;
    const std::string topology = topology_for(flags, recording, found.gpus, folder);
    config["topology"] = topology;
    if (topology.empty()) {
        text += "            no topology of " + std::to_string(found.gpus) + " x " +
                (recording.device.empty() ? "GPUs without a name" : one_line(recording.device)) +
                " is known: give --topology\n";
        return {};
    }
    return config;
}

/// The scenario of a file, or the one that the recording shows; none, and why, if there is none.
std::optional<Scenario> scenario_of(const Json& config, std::string& text) {
    if (config.is_null()) return std::nullopt;
    try {
        return resolve(read_run_config(config, "recognised scenario"), ConfigFolder::standard());
    } catch (const UserError& refused) {
        text += "            which does not run: " + std::string(refused.what()) + "\n";
        return std::nullopt;
    }
}

/// The workload file of an iteration.
Json recorded_workload(const ImportFlags& flags, const RecordedRun& recording, const Iteration& iteration,
                       std::string& text) {
    const ConfigFolder folder = ConfigFolder::standard();
    std::vector<std::string> notes;
    const RecordedList list = spread_list(
        flags, recording, iteration, flags.priced ? Prices::of_the_machine : Prices::recorded, folder, notes);
    for (const std::string& note : notes) text += "doubtful    " + note + "\n";
    const double lasted_us = to_microseconds(iteration.timeline().end());
    const ListShares& shares = list.shares;
    const auto share = [&](double us) {
        return std::to_string(std::llround(100 * us / std::max(1e-3, shares.all_us()))) + " %";
    };
    text += "workload    " + std::to_string(list.operators.size()) + " operators on " +
            std::to_string(list.streams) + (list.streams == 1 ? " stream, " : " streams, ") +
            fixed(lasted_us, 1) + " us as recorded; of the kernels' time " + share(shares.recorded_us) +
            " recorded, " + share(shares.priced_us) + " priced, " + share(shares.unknown_us) +
            " recorded of kernels that the table lacks\n";
    return {
        {"schema", 1},
        {"name", "recorded"},
        {"description", "One iteration of a trace, as sim import read it: " + fixed(lasted_us, 1) + " us."},
        {"source", "sim import, " + recording.traces.front().recorded_by},
        {"ranks", recording.ranks},
        {"order", "program"},
        {"operators", list.operators}};
}

std::optional<Scenario> given_scenario(const ImportFlags& flags, Json& config) {
    if (flags.scenario.empty()) return std::nullopt;
    config = read_json_file(flags.scenario);
    require_kind(config, flags.scenario, FileKind::run_config);
    return resolve(read_run_config(config, flags.scenario), ConfigFolder::standard());
}

void execute(const ImportFlags& flags) {
    if (flags.out.empty() && flags.out_workload.empty())
        throw UserError("command line: --out is missing (the measured case to write), or --out-workload");
    if (flags.spreads() && (!flags.out.empty() || flags.out_workload.empty()))
        throw UserError(
            "command line: --tp and --dp make a workload that nobody measured: give --out-workload LIST.json, and no "
            "--out");
    std::vector<fs::path> inputs(flags.files.begin(), flags.files.end());
    inputs.emplace_back(flags.scenario);
    require_outputs(std::vector<fs::path>{flags.out, flags.out_scenario, flags.out_workload}, inputs);
    const RecordedRun recording = read_recording(flags);
    Json config;
    std::optional<Scenario> scenario = given_scenario(flags, config);
    std::optional<std::size_t> gemms;
    if (scenario) gemms = gemms_a_gpu(*scenario);
    if (gemms == 0) gemms.reset();
    std::string text = recording.summary() + "\n";
    for (const std::string& note : recording.notes) text += one_line(note) + "\n";
    const ChosenIterations iterations = choose_iterations(flags, recording, gemms);
    text += iterations.text;
    if (!scenario) {
        if (iterations.ambiguous)
            text += "doubtful    the kernels that repeat may be parts of one run: then --iteration all\n";
        if (!flags.spreads()) config = recognised_config(flags, recording, iterations.median(), text);
        scenario = scenario_of(config, text);
    }
    if (!flags.out_workload.empty())
        write_file_atomically(
            flags.out_workload,
            in_lines(recorded_workload(flags, recording, iterations.median(), text)) + "\n");
    Json measured{{"schema", 1}, {"system", flags.system}, {"source", recording.traces.front().recorded_by}};
    if (scenario) measured["scenario"] = config;
    put_runs(measured, iterations.runs(), scenario, text);
    if (!flags.out.empty()) write_file_atomically(flags.out, json_text(measured) + "\n");
    if (!flags.out_scenario.empty() && scenario)
        write_file_atomically(flags.out_scenario, json_text(config, 2) + "\n");
    text += recording.not_mapped_text();
    if (!flags.out.empty())
        text += "measured case of " + std::to_string(iterations.chosen.size()) +
                (iterations.chosen.size() == 1 ? " run, " : " runs, ") +
                fixed(measured["makespan_us"].get<double>(), 1) + " us\n";
    print(text);
}

}  // namespace

void add_import_command(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("import", "Make a measured case, or a workload, of a profiler's trace");
    auto flags = std::make_shared<ImportFlags>();
    command
        ->add_option(
            "files", flags->files,
            "Traces of one recording (one file a rank, or kernels and copies in separate files), or a "
            "folder of them; one rank is enough. Compressed files (gzip, xz, bzip2, Zstandard) are read." +
                trace_formats())
        ->required();
    command->add_option("--out", flags->out, "File of the measured case to write (JSON)");
    command->add_option("--out-workload", flags->out_workload,
                        "File of the workload to write (JSON): the operators of an iteration as recorded");
    command->add_flag(
        "--priced", flags->priced,
        "In that workload GEMMs with shapes and collectives with sizes have no recorded times, so that "
        "runs price them");
    command->add_option(
        "--scenario", flags->scenario,
        "Run config of the recorded run; default: the run that sim import recognises in the trace");
    command->add_option("--out-scenario", flags->out_scenario,
                        "File of the recognised run config to write (JSON)");
    add_trace_flags(*command, *flags);
    command->add_option("--system", flags->system,
                        "Name of the machine in the measured case; default: imported");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
