#include <fstream>
#include <iostream>
#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/report/report.hpp"
#include "sim/run.hpp"

namespace overlap {
namespace {

/// One result, or {"error": …} that says what is wrong with the line.
Json answer(const std::string& line, const std::string& origin, Resolver& resolver) {
    try {
        return to_json(run(resolver.resolve(read_run_config(parse_json(line, origin), origin))));
    } catch (const UserError& error) {
        return {{"schema", 1}, {"error", error.what()}};
    }
}

// A bad line doesn't stop the others; the exit code says that there was one.
void execute(const std::string& file) {
    const bool standard = file == "-";
    std::error_code ignored;
    if (!standard && std::filesystem::is_directory(file, ignored))
        throw UserError(file + ": is a directory, expected a file of JSON lines");
    std::ifstream opened(file);
    if (!standard && !opened) throw UserError(file + ": cannot be read (no such file, or no permission)");
    std::istream& in = standard ? std::cin : opened;
    Resolver resolver(ConfigFolder::standard());
    std::size_t number = 0, answered = 0, bad = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        const Json result = answer(line, file + " line " + std::to_string(number), resolver);
        ++answered;
        bad += result.contains("error");
        print(result.dump() + "\n");
    }
    if (answered == 0) throw UserError(file + ": is empty, expected one run config a line");
    if (bad > 0)
        throw UserError(file + ": " + std::to_string(bad) + " of " + std::to_string(answered) +
                        " configs failed; their results say why");
}

}  // namespace

void add_batch_command(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("batch", "Run one config a line; one result a line, in the same order");
    auto file = std::make_shared<std::string>();
    command->add_option("file", *file, "File of run configs, one JSON object a line; '-' for standard input")
        ->required();
    command->callback([file] { execute(*file); });
}

}  // namespace overlap
