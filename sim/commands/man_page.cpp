#include <sstream>

#include "sim/commands/commands.hpp"

namespace overlap {
namespace {

/// Text of a troff page: no escape, no request, no dash that copies as something else.
std::string troff(const std::string& text) {
    std::string escaped;
    for (const char letter : text) {
        if (letter == '\\')
            escaped += "\\e";
        else if (letter == '-')
            escaped += "\\-";
        else
            escaped += letter;
    }
    return (escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" : "") + escaped;
}

/// .TP blocks of the arguments and flags of a command.
void put_options(std::ostream& out, const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_group().empty()) continue;
        const bool value = option->get_items_expected_max() > 0;
        const std::string name = option->get_name(option->get_positional(), true);
        out << ".TP\n\\fB" << troff(name) << "\\fR";
        if (value && !option->get_positional()) out << " \\fI" << troff(option->get_type_name()) << "\\fR";
        out << (option->get_required() ? " (required)" : "") << '\n'
            << troff(option->get_description()) << '\n';
    }
}

std::string man_page(const CLI::App& app) {
    std::ostringstream out;
    out << ".TH SIM 1 \"\" \"overlap " OVERLAP_VERSION "\" \"User Commands\"\n"
        << ".SH NAME\nsim \\- " << troff(app.get_description()) << '\n'
        << ".SH SYNOPSIS\n.B sim\n[\\fIcommand\\fR] [\\fIflags\\fR]\n"
        << ".SH DESCRIPTION\nWithout a command, sim runs one schedule of a workload on a machine.\n";
    put_options(out, app);
    out << ".SH COMMANDS\n";
    for (const std::string& name : command_names(app)) {
        const CLI::App& command = *app.get_subcommand(name);
        out << ".SS sim " << troff(name) << '\n' << troff(command.get_description()) << '\n';
        put_options(out, command);
    }
    out << ".SH EXIT STATUS\n0 success; 1 a fault of the program; 2 a user's mistake, one line on standard error;\n"
           "3 a prediction outside its claim (compare, reproduce).\n"
        << ".SH ENVIRONMENT\n.TP\n\\fBOVERLAP_CONFIGS\\fR\nFolder of machines, workloads and the other configs, instead of "
           "the one installed with the program.\n"
        << ".TP\n\\fBOVERLAP_MEMORY_GB\\fR\nMemory that a run may take, instead of what is left.\n"
        << ".TP\n\\fBOVERLAP_SIMGRID_SECONDS\\fR\nTime limit of a simulation by engine simgrid.\n";
    return out.str();
}

}  // namespace

void add_man_command(CLI::App& app) {
    app.add_subcommand("man", "Print the manual page")->group("")->callback([&app] { print(man_page(app)); });
}

}  // namespace overlap
