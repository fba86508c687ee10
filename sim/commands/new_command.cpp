#include <algorithm>
#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/core/dtype.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/topology/like_device.hpp"
#include "sim/topology/new_device.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

const std::string given_as = "data sheet, given as ";

struct NewFlags {
    std::string like, platform, out;
    DataSheet sheet;
    std::vector<std::string> peaks;
    std::map<std::string, double> numbers;  ///< by key of the device file
};

struct NumberFlag {
    const char* flag;
    const char* key;
    const char* doc;
};
constexpr std::array<NumberFlag, 6> number_flags{{
    {"--units", "compute_units", "Compute units: CUs (AMD) or SMs (NVIDIA)"},
    {"--clock-GHz", "peak_clock_GHz", "Highest engine clock"},
    {"--hbm-GBps", "hbm_peak_GBps", "Memory bandwidth"},
    {"--hbm-GB", "hbm_capacity_GB", "Memory capacity"},
    {"--cache-MB", "last_level_cache_MB", "Last-level cache"},
    {"--power-W", "board_power_W", "Board power"},
}};

/// "bf16=2250" of --TFLOPS, into the data sheet.
void add_peak(const std::string& text, DataSheet& sheet) {
    const auto equals = text.find('=');
    const std::string type = text.substr(0, equals);
    if (!contains(dtype_names, type))
        throw UserError("command line: --TFLOPS " + in_quotes(text) + ": " + in_quotes(type) +
                        " is no data type" + suggestion(type, dtype_names));
    const Json value =
        equals == std::string::npos ? Json() : Json::parse(text.substr(equals + 1), nullptr, false);
    if (!value.is_number())
        throw UserError("command line: --TFLOPS is " + in_quotes(text) +
                        ", expected TYPE=NUMBER, such as bf16=989");
    sheet.values["peak_TFLOPS." + type] = value.get<double>();
    sheet.sources["peak_TFLOPS." + type] = given_as + "--TFLOPS " + type;
}

/// The calibrated device that the new one is made from.
std::string like_of(const NewFlags& flags, const ConfigFolder& folder) {
    const fs::path devices = folder.folder("devices"), calibrations = folder.folder("calibrations");
    if (flags.like.empty() && flags.platform.empty())
        throw UserError("command line: --platform (AMD, NVIDIA) or --like is missing");
    if (flags.like.empty()) return nearest_device(flags.sheet.values, flags.platform, devices, calibrations);
    const std::vector<std::string> known = folder.names("calibrations");
    if (!contains(known, flags.like))
        throw UserError("command line: --like is " + in_quotes(flags.like) + ", no calibrated device" +
                        suggestion(flags.like, known));
    return flags.like;
}

void require_new(const fs::path& file) {
    if (fs::exists(file))
        throw UserError(file.string() + ": exists already; remove it, or choose another name or --out");
    require_writable(file);
}

void require_name(const std::string& name, const ConfigFolder& folder) {
    const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    if (name.empty() || name.front() == '_' || !std::ranges::all_of(name, allowed))
        throw UserError("command line: NAME is " + in_quotes(name) +
                        ", expected small letters, digits and underscores, such as gpu_2");
    if (contains(folder.names("calibrations"), name))
        throw UserError("command line: NAME is " + in_quotes(name) +
                        ", which has a calibration; expected a new name");
}

void execute(NewFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    DataSheet& sheet = flags.sheet;
    require_name(sheet.name, folder);
    if (sheet.gpus == 1 && sheet.link_GBps)
        throw UserError("command line: --link-GBps needs --gpus 2 or more");
    for (const NumberFlag& flag : number_flags)
        if (const auto given = flags.numbers.find(flag.key); given != flags.numbers.end()) {
            sheet.values[flag.key] = given->second;
            sheet.sources[flag.key] = given_as + flag.flag;
        }
    for (const std::string& peak : flags.peaks) add_peak(peak, sheet);
    sheet.sources["link"] = given_as + "--link-GBps" + (sheet.links > 0 ? " and --links" : std::string());

    const std::string like = like_of(flags, folder);
    const NewMachine made =
        new_machine(sheet, {like, read_json_file(folder.find("devices", like)),
                            read_json_file(folder.find("calibrations", like)), folder.largest_machine(like)});
    const std::string machine = made.topology.at("name");
    const fs::path devices = flags.out.empty() ? folder.folder("devices") : fs::path(flags.out),
                   topologies = flags.out.empty() ? folder.folder("topologies") : fs::path(flags.out);
    const fs::path device_file = devices / (sheet.name + ".json"),
                   topology_file = topologies / (machine + ".json");
    // Mistakes in numbers are told with their places in the file.
    const Topology checked(ConfigObject(made.topology, topology_file.string()),
                           read_device({made.device, device_file.string()}, nullptr));
    if (!flags.out.empty()) make_folder(flags.out);
    for (const fs::path& file : {device_file, topology_file}) require_new(file);
    write_file_atomically(device_file, in_lines(made.device) + "\n");
    write_file_atomically(topology_file, in_lines(made.topology) + "\n");
    print("from " + like + (flags.like.empty() ? ", the nearest calibrated device" : "") + ":\n  " +
          device_file.string() + "\n  " + topology_file.string() + "\n" +
          std::to_string(sheet.values.size()) + " values of the data sheet; all others are estimates\n" +
          "sim --topology " + (flags.out.empty() ? machine : topology_file.string()) +
          " --schedule shard_p2p runs it\n");
}

}  // namespace

void add_new_command(CLI::App& app) {
    CLI::App* group = app.add_subcommand("new", "Write the files of a new machine");
    group->require_subcommand(1);
    CLI::App* command = group->add_subcommand(
        "device", "A device and a topology from a data sheet; all else is estimated from the nearest device");
    auto flags = std::make_shared<NewFlags>();
    DataSheet& sheet = flags->sheet;
    command->add_option("name", sheet.name, "Name of the device: small letters, digits, underscores")
        ->required();
    command->add_option("--like", flags->like,
                        "Device that it is most like; default: the platform's nearest by the other flags");
    command->add_option("--platform", flags->platform, "Only devices of AMD, or of NVIDIA, are near")
        ->transform(CLI::IsMember({"AMD", "NVIDIA"}, CLI::ignore_case));
    for (const NumberFlag& flag : number_flags)
        command
            ->add_option_function<double>(
                flag.flag, [flags, key = flag.key](double value) { flags->numbers[key] = value; }, flag.doc)
            ->check(CLI::PositiveNumber);
    command
        ->add_option("--TFLOPS", flags->peaks, "Dense rate of a data type, TYPE=NUMBER: bf16=989; repeatable")
        ->take_all();
    command->add_option("--gpus", sheet.gpus, "GPUs of the topology; default 8")->check(CLI::Range(1, 1024));
    CLI::Option* link =
        command
            ->add_option("--link-GBps", sheet.link_GBps,
                         "Rate of one link in one direction; transfers achieve 73 to 88 % of what "
                         "data sheets say (sim/topology/README.md)")
            ->check(CLI::PositiveNumber);
    command->add_option("--links", sheet.links, "Links of a GPU; default: one to each peer, or to the switch")
        ->check(CLI::Range(1, 4096))
        ->needs(link);
    command->add_flag("--switch", sheet.by_switch, "Links lead to a switch instead of to each peer")
        ->needs(link);
    command->add_option("--link-latency-us", sheet.latency_us, "Latency from GPU to GPU")
        ->check(CLI::NonNegativeNumber);
    command->add_option("--out", flags->out, "Folder for both files; default: where the shipped ones are");
    command->callback([flags] { execute(*flags); });
    add_new_topology_command(*group);
}

}  // namespace overlap
