#include <memory>
#include <mutex>

#include "sim/commands/commands.hpp"
#include "sim/commands/model_flags.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/resolver.hpp"
#include "sim/sensitivity/sensitivity.hpp"

namespace overlap {
namespace {

struct SensitivityFlags {
    ScenarioFlags scenario;
    std::vector<std::string> schedules;
    double by = 10;
    std::size_t top = 20;
    std::string format = "text", plot, only;
};

Sensitivity with_progress(const SensitivityFlags& flags, std::span<const CountedRun> runs,
                          const ConfigFolder& folder) {
    std::optional<ProgressReporter> progress;
    std::once_flag begun;
    return sensitivity(runs, flags.schedules, flags.by / 100, flags.only, folder, [&](std::size_t all) {
        std::call_once(begun, [&] { progress.emplace("changed values", all); });
        progress->add();
    });
}

/// `runs`: what `get` gives, asked for once the picture can be written.
void execute(const SensitivityFlags& flags,
             const std::function<std::vector<CountedRun>(const ConfigFolder&)>& get) {
    const ConfigFolder folder = ConfigFolder::standard();
    if (!flags.plot.empty()) {
        require_picture_name(flags.plot);
        require_gnuplot();
        require_writable(flags.plot);
    }
    const std::vector<CountedRun> runs = get(folder);
    Sensitivity result = with_progress(flags, runs, folder);
    if (!flags.plot.empty()) write_picture(flags.plot, tornado(result, flags.top));
    if (flags.format == "text") return print_for_people(to_text(result, flags.top));
    print(flags.format == "json" ? json_text(to_json(result)) + "\n" : to_csv(result));
}

void add_output_flags(CLI::App& command, SensitivityFlags& flags) {
    command
        .add_option(
            "--by", flags.by,
            "Change of each value, percent; default 10. A value that would leave its range is not changed")
        ->check(CLI::Range(0.01, 1000.0));
    command
        .add_option("--only", flags.only,
                    "hardware: links, memory, units, engines; fit: constants of cost models; default both")
        ->check(CLI::IsMember(std::vector<std::string>(influence_kinds.begin(), influence_kinds.end())));
    command.add_option("--top", flags.top, "Values of each kind in the text, and in the plot; default 20")
        ->check(CLI::Range(1, 1000));
    command.add_option("--plot", flags.plot, "Picture of the first values, FILE.svg or FILE.png");
}

}  // namespace

void add_sensitivity_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "sensitivity",
        "Change each number of the machine, one at a time, and list those that change a run's makespan most");
    auto flags = std::make_shared<SensitivityFlags>();
    flags->scenario.add_to(*command);
    command->add_option("--schedules", flags->schedules, "Several schedules instead of --schedule: a,b")
        ->delimiter(',')
        ->excludes(command->get_option("--schedule"));
    add_output_flags(*command, *flags);
    add_format_flag(*command, flags->format);

    CLI::App* of_model = command->add_subcommand(
        "model",
        "The same of a model's step: its layers, with the schedules that sim model finds for their pairs");
    const std::shared_ptr<const ModelFlags> model = add_model_flags(*of_model);
    auto output = std::make_shared<SensitivityFlags>();
    add_output_flags(*of_model, *output);
    add_format_flag(*of_model, output->format);
    of_model->callback([model, output] {
        execute(*output, [&](const ConfigFolder& folder) {
            return mapped(runs_of_step(*model, folder), [](const auto& run) {
                return CountedRun{run.first, run.second};
            });
        });
    });
    command->callback([flags, command] {
        if (!command->get_subcommands().empty()) return;
        execute(*flags, [&](const ConfigFolder& folder) {
            return std::vector{CountedRun{Resolver(folder).with_machine(flags->scenario.config(folder))}};
        });
    });
}

}  // namespace overlap
