#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace overlap {

/// Columns of the terminal that standard output is; none if it is a file or a pipe.
std::optional<std::size_t> terminal_columns();

/// Prints a text report like `print`, with colours if standard output is a terminal, unless NO_COLOR is set
/// (no-color.org) or TERM is "dumb": headings bold, bars blue, notes yellow.
void print_for_people(const std::string& text);

/// --quiet: no log and no progress on standard error; errors remain.
void be_quiet();
bool is_quiet();

}  // namespace overlap
