#include "sim/reproduce/reproduce.hpp"

#include <spdlog/spdlog.h>
#include <algorithm>
#include <memory>
#include <optional>

#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/core/ranges.hpp"
#include "sim/report/run/report.hpp"

namespace overlap {
namespace {

struct ReproduceFlags {
    std::string system;
    std::string format = reproduction_format_names.front();
    std::vector<std::string> what_if;
};

std::vector<double> predictions(const std::vector<ReproducedExperiment>& experiments) {
    std::vector<double> values;
    for (const ReproducedExperiment& experiment : experiments)
        append(values, mapped(experiment.cases, &ReproducedCase::predicted));
    return values;
}

int execute(const ReproduceFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    Remarks remarks;
    assign_what_ifs(remarks.what_if, flags.what_if);
    const std::vector<std::filesystem::path> files = experiment_files(flags.system, folder);
    auto progress =
        std::make_optional<ProgressReporter>("experiments", files.size() * (1 + remarks.what_if.size()));
    const auto reproduced = [&](const Json& what_if) {
        return mapped(files, [&](const std::filesystem::path& file) {
            progress->add();
            return reproduce(read_experiment(file, folder), folder, what_if);
        });
    };
    const std::vector<ReproducedExperiment> experiments = reproduced(remarks.what_if);
    for (const auto& [key, value] : remarks.what_if.items()) {
        Json others = remarks.what_if;
        others.erase(key);
        if (predictions(reproduced(others)) == predictions(experiments))
            remarks.notes.push_back(no_effect_note(key, value, "these figures"));
    }
    progress.reset();
    for (const std::string& note : remarks.notes) spdlog::warn("{}", note);
    const std::size_t format = place_of(reproduction_format_names, flags.format);
    print(render(experiments, static_cast<ReproductionFormat>(format), remarks));
    if (!remarks.what_if.empty()) return 0;  // the files claim nothing of another machine
    return std::ranges::all_of(experiments, &ReproducedExperiment::as_stated) ? 0 : 3;
}

}  // namespace

void add_reproduce_command(CLI::App& app, int& status) {
    CLI::App* command = app.add_subcommand(
        "reproduce",
        "Compare published figures with predictions; exit 3 if one is not as its file claims, unless "
        "something was changed by --what-if");
    auto flags = std::make_shared<ReproduceFlags>();
    command->add_option("system", flags->system,
                        "A folder of configs/experiments, or a file; default: all folders");
    add_what_if_flag(*command, flags->what_if);
    command->add_option("--format", flags->format)->check(CLI::IsMember(reproduction_format_names));
    command->callback([flags, &status] { status = execute(*flags); });
}

}  // namespace overlap
