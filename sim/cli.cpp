#include "sim/cli.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <algorithm>
#include <iostream>
#include <sstream>

#include "sim/commands/commands.hpp"
#include "sim/core/errors.hpp"

namespace overlap {
namespace {

std::vector<std::string> flags_of(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    return names;
}

/// Names and values that the user gave may hold line breaks; an error is one line whatever they hold.
std::string one_line(std::string text) {
    std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return text;
}

/// An empty value is a mistake (a variable of the shell that isn't set), never a flag that wasn't given.
void refuse_empty_values(CLI::App& app) {
    const CLI::Validator not_empty(
        [](std::string& value) { return std::string(value.empty() ? "is empty" : ""); }, "");
    for (CLI::Option* option : app.get_options())
        if (option->get_items_expected_max() > 0) option->check(not_empty);
    for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
}

/// CLI11's own texts, with the nearest flag where one was not known.
[[noreturn]] void refuse(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
    const CLI::App* chosen = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
    std::string message = error.what();
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        const std::vector<std::string> left = chosen->remaining(true);
        const std::string word = left.empty() ? std::string(argc > 1 ? argv[1] : "") : left.front();
        const std::vector<std::string> known = flags_of(*chosen);
        const std::string near = nearest_name(word, known);
        message = "'" + word + "' is not known here" +
                  (near.empty() ? " (see --help)" : " (did you mean '" + near + "'?)");
    }
    throw UserError(one_line("command line: " + message));
}

}  // namespace

void print(std::string_view text) {
    std::cout << text << std::flush;
    if (!std::cout) throw std::runtime_error("standard output can't be written");
}

int run_command_line(int argc, char** argv) {
    spdlog::set_default_logger(spdlog::stderr_color_mt("sim"));
    spdlog::set_level(spdlog::level::warn);

    CLI::App app{"Simulates compute/communication overlap on several GPUs.", "sim"};
    app.set_version_flag("--version", OVERLAP_VERSION);
    app.set_help_all_flag("--help-all", "Help of all commands");
    app.add_flag_callback("-v,--verbose", [] { spdlog::set_level(spdlog::level::debug); }, "Log to stderr");
    app.require_subcommand(0, 1);
    add_run_command(app);
    add_advise_command(app);
    add_batch_command(app);
    add_calibrate_command(app);
    add_cost_command(app);
    add_import_command(app);
    add_list_commands(app);
    add_sweep_command(app);
    add_report_command(app);
    int status = 0;
    add_verify_command(app, status);
    add_compare_command(app, status);
    add_reproduce_command(app, status);
    refuse_empty_values(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked_for_help) {
        std::ostringstream text;
        app.exit(asked_for_help, text);
        print(text.str());
    } catch (const CLI::ParseError& error) {
        refuse(app, error, argc, argv);
    } catch (const UserError& error) {
        throw UserError(one_line(error.what()));
    }
    return status;
}

}  // namespace overlap
