#include <memory>
#include <mutex>

#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/shown.hpp"
#include "sim/sensitivity/sensitivity.hpp"

namespace overlap {
namespace {

struct SensitivityFlags {
    ScenarioFlags scenario;
    std::vector<std::string> schedules;
    double by = 10;
    std::size_t top = 20;
    std::string format = "text", plot;
};

Sensitivity with_progress(const SensitivityFlags& flags, const RunConfig& config,
                          const ConfigFolder& folder) {
    std::vector<std::string> schedules = flags.schedules;
    if (schedules.empty()) schedules.push_back(config.schedule);
    std::optional<ProgressReporter> progress;
    std::once_flag begun;
    return sensitivity(config, schedules, flags.by / 100, folder, [&](std::size_t all) {
        std::call_once(begun, [&] { progress.emplace("changed values", all); });
        progress->add();
    });
}

void execute(const SensitivityFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    if (!flags.plot.empty()) {
        require_picture_name(flags.plot);
        require_gnuplot();
        require_writable(flags.plot);
    }
    const Sensitivity result = with_progress(flags, flags.scenario.config(folder), folder);
    if (!flags.plot.empty()) write_picture(flags.plot, tornado(result, flags.top));
    if (flags.format == "text") return print_for_people(to_text(result, flags.top));
    print(flags.format == "json" ? json_text(to_json(result)) + "\n" : to_csv(result));
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
    command->add_option("--by", flags->by, "Change of each value, percent; default 10")
        ->check(CLI::Range(0.01, 90.0));
    command->add_option("--top", flags->top, "Values in the text and in the plot; default 20")
        ->check(CLI::Range(1, 1000));
    add_format_flag(*command, flags->format);
    command->add_option("--plot", flags->plot, "Picture of the first values, FILE.svg or FILE.png");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
