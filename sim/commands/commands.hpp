#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include "sim/report/page/page.hpp"

namespace overlap {

/// Each function adds a command's flags to `app` (or to a subcommand) and the code to run if it is chosen.
void add_run_command(CLI::App& app);
void add_advise_command(CLI::App& app);
void add_batch_command(CLI::App& app);
void add_calibrate_command(CLI::App& app);
void add_chakra_command(CLI::App& app);
void add_cost_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_list_commands(CLI::App& app);
void add_model_command(CLI::App& app);
/// `sim new topology`, of the commands `group`.
void add_new_topology_command(CLI::App& group);
void add_new_command(CLI::App& app);
void add_schema_command(CLI::App& app);
void add_sensitivity_command(CLI::App& app);
void add_search_command(CLI::App& app);
void add_sweep_command(CLI::App& app);
void add_report_command(CLI::App& app);
/// `status` gets the exit code: 3 if something is outside its tolerance.
void add_compare_command(CLI::App& app, int& status);
void add_reproduce_command(CLI::App& app, int& status);

/// `sim completion` and `sim man`, from the flags of all commands of `app`. Contract: after all others.
void add_completion_commands(CLI::App& app);
void add_man_command(CLI::App& app);

/// `--format`: text, json or csv.
void add_format_flag(CLI::App& app, std::string& format);
/// The flags of a command: "--topology".
std::vector<std::string> flag_names(const CLI::App& app);
/// The command with that name; null if there is none.
const CLI::App* command_of(const CLI::App& app, const std::string& name);
/// Names of the commands that help shows.
std::vector<std::string> command_names(const CLI::App& app);
/// The headings of `sim list`, and the names under one of them, or under all if it is empty.
std::vector<std::string> listed_kinds();
std::vector<std::string> listed_names(const std::string& kind);

/// The day, "2026-11-29", in UTC; that of SOURCE_DATE_EPOCH if it is set, for outputs that are to be equal byte by
/// byte.
std::string today();
/// The program's version, the day, and the command as a shell takes it.
PageOrigin page_origin();
/// Writes `page` with its origin to a file of its own.
void write_page(const std::filesystem::path& file, const Page& page);

/// Prints a result on stdout; throws UserError if stdout can't take it (disk full, closed pipe).
void print(std::string_view text);

}  // namespace overlap
