#include <fstream>
#include <iostream>
#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/core/failure.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/json_runs.hpp"

namespace overlap {
namespace {

/// A result, or {"error": …} with the mistake in the line; `ours` if it is a fault of the program.
Json answer(const std::string& line, const std::string& origin, JsonRuns& runs, bool& ours) {
    try {
        return runs.run(parse_json(line, origin), origin);
    } catch (...) {
        const Failure failure = current_failure();
        ours = ours || failure.ours;
        return {{"schema", 1}, {"error", failure.reason}};
    }
}

// A bad line does not stop the others; the exit code reports it.
void execute(const std::string& file) {
    const bool standard = file == "-";
    std::error_code ignored;
    if (!standard && std::filesystem::is_directory(file, ignored))
        throw UserError(file + ": is a directory, expected a file of JSON lines");
    std::ifstream opened(file);
    if (!standard && !opened) throw UserError(file + ": cannot be read (no such file, or no permission)");
    std::istream& in = standard ? std::cin : opened;
    JsonRuns runs(ConfigFolder::standard());
    std::size_t number = 0, answered = 0, bad = 0;
    bool ours = false;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        const Json result = answer(line, file + " line " + std::to_string(number), runs, ours);
        ++answered;
        bad += result.contains("error");
        print(json_text(result) + "\n");
    }
    if (answered == 0) throw UserError(file + ": is empty, expected one run config a line");
    if (bad == 0) return;
    const std::string failed = file + ": " + std::to_string(bad) + " of " + std::to_string(answered) +
                               " configs failed; their results say why";
    if (ours) throw std::logic_error(failed);
    throw UserError(failed);
}

}  // namespace

void add_batch_command(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("batch", "Run one config a line; print one result a line, in the same order");
    auto file = std::make_shared<std::string>();
    command->add_option("file", *file, "File of run configs, one JSON object a line; '-' for standard input")
        ->required();
    command->callback([file] { execute(*file); });
}

}  // namespace overlap
