#include "sim/commands/cli.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <memory>
#include <sstream>

#include "sim/commands/command_line.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

/// A flag of every command, so that it may stand anywhere on the line.
void add_quiet_flag(CLI::App& app) {
    app.add_flag_callback("-q,--quiet", be_quiet, "Only the result: no progress, no log");
    for (CLI::App* command : app.get_subcommands({})) add_quiet_flag(*command);
}

/// `sim help new device` is `sim new device --help`.
void add_help_command(CLI::App& app) {
    CLI::App* help = app.add_subcommand("help", "Help of a command");
    auto names = std::make_shared<std::vector<std::string>>();
    help->add_option("command", *names,
                     "A command, and a command of its own (new device); default: an overview");
    help->callback([&app, names] {
        const CLI::App* command = &app;
        std::string before;
        for (const std::string& name : *names) {
            const CLI::App* next = command_of(*command, name);
            if (next == nullptr)
                throw UserError("help: " + in_quotes(name) + " is no command" +
                                (command == &app ? "" : " of " + in_quotes(command->get_name())) +
                                suggestion(name, command_names(*command)));
            before += (before.empty() ? "" : " ") + command->get_name();
            command = next;
        }
        if (command == &app)
            return print(app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
        print(command->help(before));
    });
}

/// CLI11's, less the flags that a flag excludes: a refusal names them, and lists of them would be half of a help text.
class HelpFormatter : public CLI::Formatter {
    std::string make_option_opts(const CLI::Option* option) const override {
        const std::string text = CLI::Formatter::make_option_opts(option);
        return text.substr(0, text.find(" " + get_label("Excludes") + ":"));
    }
};

}  // namespace

int run_command_line(int argc, char** argv) {
    spdlog::set_default_logger(spdlog::stderr_color_mt("sim"));
    spdlog::set_level(spdlog::level::warn);

    CLI::App app{"Simulates compute/communication overlap on several GPUs.", "sim"};
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_version_flag("--version", OVERLAP_VERSION);
    app.set_help_all_flag("--help-all", "Help of all commands");
    app.add_flag_callback(
        "-v,--verbose", [] { spdlog::set_level(spdlog::level::debug); }, "Log to stderr");
    app.require_subcommand(0, 1);
    add_run_command(app);
    add_advise_command(app);
    add_batch_command(app);
    add_calibrate_command(app);
    add_chakra_command(app);
    add_cost_command(app);
    add_import_command(app);
    add_list_commands(app);
    add_model_command(app);
    add_new_command(app);
    add_schema_command(app);
    add_search_command(app);
    add_sensitivity_command(app);
    add_sweep_command(app);
    add_report_command(app);
    int status = 0;
    add_compare_command(app, status);
    add_reproduce_command(app, status);
    add_help_command(app);
    add_quiet_flag(app);
    refuse_empty_values(app);
    add_completion_commands(app);  // an unfinished word may be empty
    add_man_command(app);
    remember_command({argv + 1, argv + std::max(argc, 1)});
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked_for_help) {
        std::ostringstream text;
        app.exit(asked_for_help, text);
        print(text.str());
    } catch (const CLI::ParseError& error) {
        refuse(app, error, argc > 1 ? argv[1] : "");
    }
    return status;
}

}  // namespace overlap
