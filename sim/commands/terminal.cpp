#include "sim/commands/terminal.hpp"

#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string_view>

#include "sim/commands/command_line.hpp"
#include "sim/commands/commands.hpp"
#include "sim/core/notices.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

constexpr std::string_view bold = "\033[1m", blue = "\033[34m", yellow = "\033[33m", plain = "\033[0m";

bool wants_colours() {
    const char *no_colour = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
    return !is_captured() && isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0') &&
           (terminal == nullptr || std::string_view(terminal) != "dumb");
}

std::string in(std::string_view colour, const std::string& text) {
    return std::string(colour) + text + std::string(plain);
}

/// Runs of '#', which are bars.
std::string with_bars(const std::string& line) {
    std::string result;
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t begin = std::min(line.find('#', at), line.size());
        const std::size_t end = std::min(line.find_first_not_of('#', begin), line.size());
        result += line.substr(at, begin - at);
        if (end > begin) result += in(blue, line.substr(begin, end - begin));
        at = end;
    }
    return result;
}

/// The first line, and lines that have text below them and begin no column, are headings.
std::string coloured(const std::string& text) {
    std::string result;
    std::istringstream lines(text);
    bool first = true, of_note = false;
    for (std::string line; std::getline(lines, line); first = false) {
        const bool begins = !line.empty() && line[0] != ' ';
        of_note = line.starts_with("note ") || (of_note && !begins);
        const bool heading = first || (begins && line.ends_with(':')) || line.starts_with("where the time") ||
                             line.ends_with("what decides");
        result += (heading                    ? in(bold, line)
                   : of_note && !line.empty() ? in(yellow, line)
                                              : with_bars(line)) +
                  "\n";
    }
    return result;
}

}  // namespace

std::optional<std::size_t> terminal_columns() {
    winsize size{};
    if (is_captured() || isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
        size.ws_col == 0)
        return std::nullopt;
    return size.ws_col;
}

void print_for_people(const std::string& text) {
    if (!wants_colours()) return print(text);
    std::cout << coloured(printable(text));
    print("");  // flushes, and throws if the text could not be written
}

void be_quiet() {
    spdlog::set_level(spdlog::level::off);
    notices_are_off = true;
}

bool is_quiet() {
    return spdlog::get_level() == spdlog::level::off;
}

}  // namespace overlap
