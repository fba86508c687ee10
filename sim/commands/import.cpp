#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/core/timeline_json.hpp"
#include "sim/importers/trace_importer.hpp"
#include "sim/run.hpp"

namespace overlap {
namespace {

struct ImportFlags {
    std::vector<std::string> files;
    std::string out, format, scenario, system = "imported";
};

void execute(const ImportFlags& flags) {
    std::vector<RecordedTrace> traces;
    std::map<std::string, std::size_t> not_mapped;
    for (const std::string& file : flags.files) {
        traces.push_back(find_trace_importer(file, flags.format).make()->read(file));
        for (const auto& [name, count] : traces.back().not_mapped) not_mapped[name] += count;
    }
    const Timeline timeline = timeline_of(traces);
    if (timeline.spans().empty())
        throw UserError(flags.files.front() + ": holds no kernel or copy of a GPU that has a kind here");
    Json measured{{"schema", 1}, {"system", flags.system}, {"source", traces.front().recorded_by}};
    if (!flags.scenario.empty()) {
        const Json scenario = read_json_file(flags.scenario);
        resolve(read_run_config(scenario, flags.scenario), ConfigFolder::standard());
        measured["scenario"] = scenario;
    }
    measured["makespan_us"] = to_microseconds(timeline.end());
    measured["spans"] = spans_json(timeline);
    write_file_atomically(flags.out, measured.dump() + "\n");

    std::string text = std::to_string(timeline.spans().size()) + " spans of " +
                       std::to_string(timeline.gpus()) + " GPUs over " +
                       std::to_string(to_microseconds(timeline.end())) + " us, from " +
                       traces.front().recorded_by + "\n";
    for (const auto& [name, count] : not_mapped)
        text += "not mapped  " + std::to_string(count) + " x " + name + "\n";
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
        ->add_option("files", flags->files,
                     "Traces of one run (a file a rank, or kernels and copies apart)." + formats)
        ->required();
    command->add_option("--out", flags->out, "The measured case to write (JSON)")->required();
    command->add_option("--format", flags->format, "Format, where it is not to be told from the file");
    command->add_option("--scenario", flags->scenario,
                        "Run config of what was recorded, so that sim compare can predict it");
    command->add_option("--system", flags->system, "Name of the machine; default imported");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
