#include <map>
#include <memory>

#include "sim/chakra/chakra_workload.hpp"
#include "sim/commands/commands.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/config_folder.hpp"

namespace overlap {
namespace {

constexpr std::size_t columns_of_an_operator = 200;  // a line for each

struct ChakraFlags {
    std::string trace, workload, out;
    int ranks = 0;
};

void read(const ChakraFlags& flags) {
    require_outputs(std::vector<std::filesystem::path>{flags.out},
                    std::vector<std::filesystem::path>{flags.trace, flags.trace + ".0.et"});
    const ChakraWorkload chakra = read_chakra(flags.trace);
    const Json& operators = chakra.workload.at("operators");
    read_workload({chakra.workload, flags.trace});  // its errors
    if (!flags.out.empty())
        write_file_atomically(flags.out, in_lines(chakra.workload, columns_of_an_operator) + "\n");
    std::map<std::string, std::size_t> kinds;
    for (const Json& op : operators) ++kinds[op.at("type").get<std::string>()];
    std::string text =
        std::to_string(operators.size()) + " operators of " + chakra.workload.at("ranks").dump() + " ranks:";
    for (const auto& [kind, count] : kinds) text += " " + std::to_string(count) + " " + kind;
    text += "\n";
    for (const std::string& note : chakra.notes) text += note + "\n";
    print(text);
}

void write(const ChakraFlags& flags) {
    const ConfigFile file =
        read_config_file(ConfigFolder::standard().find("workloads", flags.workload), "workload");
    require_kind(file.json, file.name, FileKind::workload);
    const Workload workload = read_workload(file.view());
    const std::vector<std::string> files = to_chakra(workload, flags.ranks);
    const auto name_of_rank = [&](std::size_t rank) {
        return flags.out + "." + std::to_string(rank) + ".et";
    };
    for (std::size_t rank = 0; rank < files.size(); ++rank) require_writable(name_of_rank(rank));
    std::size_t bytes = 0;
    for (std::size_t rank = 0; rank < files.size(); ++rank) {
        write_file_atomically(name_of_rank(rank), files[rank]);
        bytes += files[rank].size();
    }
    print(std::to_string(files.size()) + " files, " + std::to_string(bytes) + " bytes: " + name_of_rank(0) +
          (files.size() > 1 ? " to " + name_of_rank(files.size() - 1) : "") + "\n");
}

}  // namespace

void add_chakra_command(CLI::App& app) {
    CLI::App* group = app.add_subcommand(
        "chakra", "Chakra execution traces, as ASTRA-sim takes them: to and from workloads");
    group->require_subcommand(1);
    auto flags = std::make_shared<ChakraFlags>();
    CLI::App* reading =
        group->add_subcommand("read", "Make a workload of a trace (--workload takes a trace, too)");
    reading->add_option("trace", flags->trace, "NAME of the files NAME.0.et, NAME.1.et, …, or one of them")
        ->required();
    reading->add_option("--out", flags->out, "File of the workload to write (JSON); default: only a summary");
    reading->callback([flags] { read(*flags); });
    CLI::App* writing = group->add_subcommand("write", "Make a trace of a workload, a file a rank");
    writing->add_option("--workload", flags->workload, "A file, or a name in configs/workloads")->required();
    writing->add_option("--ranks", flags->ranks, "Number of GPUs")->required()->check(CLI::Range(1, 65536));
    writing->add_option("--out", flags->out, "NAME of the files NAME.0.et, NAME.1.et, …")->required();
    writing->callback([flags] { write(*flags); });
}

}  // namespace overlap
