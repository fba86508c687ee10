#include "sim/reproduce/reproduce.hpp"

#include <memory>
#include <optional>

#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

struct ReproduceFlags {
    std::string system;
    std::string format = reproduction_format_names.front();
};

int execute(const ReproduceFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    std::vector<ReproducedExperiment> experiments;
    bool as_stated = true;
    const std::vector<std::filesystem::path> files = experiment_files(flags.system, folder);
    auto progress = std::make_optional<ProgressReporter>("experiments", files.size());
    for (const std::filesystem::path& file : files) {
        experiments.push_back(reproduce(read_experiment(file, folder), folder));
        for (const ReproducedCase& one : experiments.back().cases) as_stated = as_stated && one.as_stated();
        progress->add();
    }
    progress.reset();
    const std::size_t format = place_of(reproduction_format_names, flags.format);
    print(render(experiments, static_cast<ReproductionFormat>(format)));
    return as_stated ? 0 : 3;
}

}  // namespace

void add_reproduce_command(CLI::App& app, int& status) {
    CLI::App* command = app.add_subcommand(
        "reproduce", "Compare published figures with predictions; exit 3 if one is not as its file claims");
    auto flags = std::make_shared<ReproduceFlags>();
    command->add_option("system", flags->system,
                        "A folder of configs/experiments, or a file; default: all folders");
    command->add_option("--format", flags->format)->check(CLI::IsMember(reproduction_format_names));
    command->callback([flags, &status] { status = execute(*flags); });
}

}  // namespace overlap
