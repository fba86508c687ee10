#include "sim/commands/cli.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>
#include <sstream>

#include "sim/commands/commands.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

std::string command_as_given;  // set once, before the command runs

/// `word` as a shell reads it back.
std::string shell_quoted(const std::string& word) {
    constexpr std::string_view plain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+,.:/@%";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    std::string quoted = "'";
    for (const char letter : word) letter == '\'' ? quoted += "'\\''" : quoted += letter;
    return quoted + "'";
}

/// An empty value is a mistake (an unset shell variable), not an absent flag.
void refuse_empty_values(CLI::App& app) {
    const CLI::Validator not_empty(
        [](std::string& value) { return std::string(value.empty() ? "is empty" : ""); }, "");
    for (CLI::Option* option : app.get_options())
        if (option->get_items_expected_max() > 0) option->check(not_empty);
    for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
}

/// CLI11's own texts, plus the nearest flag for an unknown one.
[[noreturn]] void refuse(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
    const CLI::App* chosen = &app;
    while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
    std::string message = error.what();
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        const std::vector<std::string> left = chosen->remaining(true);
        const std::string word = left.empty() ? std::string(argc > 1 ? argv[1] : "") : left.front();
        std::vector<std::string> known = flag_names(*chosen);
        append(known, command_names(*chosen));
        const std::string near = nearest_name(word, known);
        message = in_quotes(word) + " is not known here" +
                  (near.empty() ? " (see --help)" : " (did you mean " + in_quotes(near) + "?)");
    }
    throw UserError(one_line("command line: " + message));
}

/// Of every command, so that it may stand anywhere on the line.
void add_quiet_flag(CLI::App& app) {
    app.add_flag_callback("-q,--quiet", be_quiet, "Only the result: no progress, no log");
    for (CLI::App* command : app.get_subcommands({})) add_quiet_flag(*command);
}

/// `sim help new device` is `sim new device --help`.
void add_help_command(CLI::App& app) {
    CLI::App* help = app.add_subcommand("help", "Help of a command");
    auto names = std::make_shared<std::vector<std::string>>();
    help->add_option("command", *names, "A command, and a command of its own (new device); default: an overview");
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

void add_format_flag(CLI::App& app, std::string& format) {
    app.add_option("--format", format, "Output: text, json or csv")
        ->check(CLI::IsMember({"text", "json", "csv"}));
}

std::string today() {
    std::time_t time = std::time(nullptr);
    if (const char* fixed = std::getenv("SOURCE_DATE_EPOCH")) {
        const char* end = fixed + std::strlen(fixed);
        const auto read = std::from_chars(fixed, end, time);
        if (read.ec != std::errc() || read.ptr != end || time < 0)
            throw UserError("SOURCE_DATE_EPOCH: is " + in_quotes(fixed) + " (allowed: seconds since 1970)");
    }
    std::array<char, 32> text{};
    const std::tm* day = std::gmtime(&time);
    if (day == nullptr || std::strftime(text.data(), text.size(), "%Y-%m-%d", day) == 0)
        throw UserError("SOURCE_DATE_EPOCH: is out of range");
    return text.data();
}

PageOrigin page_origin() {
    return {OVERLAP_VERSION, today(), command_as_given};
}

void write_page(const std::filesystem::path& file, const Page& page) {
    write_file_atomically(file, to_html(page, page_origin()));
}

void print(std::string_view text) {
    errno = 0;
    std::cout << printable(text) << std::flush;
    if (!std::cout)
        throw UserError(std::string("standard output: cannot be written: ") +
                        (errno == 0 ? "an earlier write failed" : std::strerror(errno)));
}

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
    command_as_given = "sim";
    for (int i = 1; i < argc; ++i) command_as_given += " " + shell_quoted(argv[i]);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked_for_help) {
        std::ostringstream text;
        app.exit(asked_for_help, text);
        print(text.str());
    } catch (const CLI::ParseError& error) {
        refuse(app, error, argc, argv);
    }
    return status;
}

}  // namespace overlap
