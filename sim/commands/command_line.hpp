#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace overlap {

/// Makes empty values of flags mistakes.
void refuse_empty_values(CLI::App& app);
/// Throws what CLI11 found wrong as UserError, with the nearest flag for an unknown one. `first`: the first word.
[[noreturn]] void refuse(const CLI::App& app, const CLI::ParseError& error, const std::string& first);

/// The words after "sim", for pages, which say how they came about.
void remember_command(const std::vector<std::string>& words);

/// While it lives, what commands print in this thread goes into `text`.
class Captured {
public:
    explicit Captured(std::string& text);
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
    ~Captured();
};
bool is_captured();

/// Runs a command that has no sweep, and of which no file but those that its flags name is written, with its words
/// after "sim". What it prints goes into `text`, also if it then throws. Throws UserError.
void run_captured(std::vector<std::string> words, std::string& text);

}  // namespace overlap
