#include "sim/commands/command_line.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <iostream>

#include "sim/commands/commands.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

thread_local std::string* captured = nullptr;
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

}  // namespace

/// An empty value is a mistake (an unset shell variable), not an absent flag.
void refuse_empty_values(CLI::App& app) {
    const CLI::Validator not_empty(
        [](std::string& value) { return std::string(value.empty() ? "is empty" : ""); }, "");
    for (CLI::Option* option : app.get_options())
        if (option->get_items_expected_max() > 0) option->check(not_empty);
    for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
}

void refuse(const CLI::App& app, const CLI::ParseError& error, const std::string& first) {
    const CLI::App* chosen = &app;
    while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
    std::string message = error.what();
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        const std::vector<std::string> left = chosen->remaining(true);
        const std::string word = left.empty() ? first : left.front();
        std::vector<std::string> known = flag_names(*chosen);
        append(known, command_names(*chosen));
        const std::string near = nearest_name(word, known);
        message = in_quotes(word) + " is not known here" +
                  (near.empty() ? " (see --help)" : " (did you mean " + in_quotes(near) + "?)");
    }
    throw UserError(one_line("command line: " + message));
}

Captured::Captured(std::string& text) {
    captured = &text;
}

Captured::~Captured() {
    captured = nullptr;
}

bool is_captured() {
    return captured != nullptr;
}

void add_format_flag(CLI::App& app, std::string& format) {
    app.add_option("--format", format, "Output: text, json or csv")
        ->check(CLI::IsMember({"text", "json", "csv"}));
}

void remember_command(const std::vector<std::string>& words) {
    command_as_given = "sim";
    for (const std::string& word : words) command_as_given += " " + shell_quoted(word);
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
    if (is_captured()) {
        *captured += printable(text);
        return;
    }
    errno = 0;
    std::cout << printable(text) << std::flush;
    if (!std::cout)
        throw UserError(std::string("standard output: cannot be written: ") +
                        (errno == 0 ? "an earlier write failed" : std::strerror(errno)));
}

void run_captured(std::vector<std::string> words, std::string& text) {
    CLI::App app{"", "sim"};
    app.require_subcommand(0, 1);
    int tolerated = 0;
    add_run_command(app);
    add_advise_command(app);
    add_compare_command(app, tolerated);
    add_cost_command(app);
    add_import_command(app);
    add_list_commands(app);
    add_model_command(app);
    add_sensitivity_command(app);
    refuse_empty_values(app);
    const std::string first = words.empty() ? "" : words.front();
    std::ranges::reverse(words);  // as CLI11 takes them
    const Captured capturing(text);
    try {
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        refuse(app, error, first);
    }
}

}  // namespace overlap
