#pragma once

#include <CLI/CLI.hpp>

namespace overlap {

/// Each adds its flags to `app` (or a subcommand of its own) and what runs when it is chosen.
void add_run_command(CLI::App& app);
void add_advise_command(CLI::App& app);
void add_batch_command(CLI::App& app);
void add_calibrate_command(CLI::App& app);
void add_cost_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_list_commands(CLI::App& app);
void add_sweep_command(CLI::App& app);
void add_report_command(CLI::App& app);
/// `status` gets the exit code: 3 where something is outside its tolerance.
void add_verify_command(CLI::App& app, int& status);
void add_compare_command(CLI::App& app, int& status);
void add_reproduce_command(CLI::App& app, int& status);

/// Prints a result on stdout; throws UserError where stdout can't take it (disk full, closed pipe).
void print(std::string_view text);

}  // namespace overlap
