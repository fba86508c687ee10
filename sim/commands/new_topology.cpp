#include <algorithm>
#include <cctype>
#include <memory>
#include <set>

#include "sim/commands/commands.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/importers/machine_importer.hpp"
#include "sim/run/config_folder.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

struct TopologyFlags {
    std::string name, from, device, out;
    std::optional<double> link_GBps;
};

/// A device of ours, and how many links a port of its shipped topologies stands for.
struct KnownDevice {
    std::string name;
    int links = 1;
};

/// The device that the flag or the file's PCI ids name.
KnownDevice device_of(const TopologyFlags& flags, const MachineDescription& machine,
                      const ConfigFolder& folder) {
    const Json json = read_json_file(folder.folder("pci_devices.json"));
    ConfigObject file(json, "pci_devices.json");
    KnownDevice found{flags.device};
    for (ConfigObject& one : file.objects("devices")) {
        const std::string is = one.text("is");
        const bool same = one.text("vendor") == machine.vendor && one.text("device") == machine.device;
        if (found.name.empty() && same) found.name = is;
        if (found.name == is && one.has("links"))
            found.links = static_cast<int>(one.integer("links", 1, 1000));
    }
    const std::vector<std::string> known = folder.names("devices");
    if (found.name.empty())
        throw UserError("command line: --device is missing: " + flags.from + " " +
                        (machine.device.empty() ? "names no GPU"
                                                : "has GPUs of PCI ids " + machine.vendor + " " +
                                                      machine.device + ", which are of no known device") +
                        suggestion("", known));
    if (!contains(known, found.name))
        throw UserError("command line: --device is " + in_quotes(found.name) + ", no known device" +
                        suggestion(found.name, known));
    return found;
}

/// {"value", "source"}.
Json sourced(double value, const std::string& source) {
    return {{"value", value}, {"source", source}};
}

/// What one link of the device achieves, and where that is known from.
struct Link {
    double GBps = 0;
    std::string source = {};
    Json latency = {};
};

Link link_of(const TopologyFlags& flags, const KnownDevice& device, const ConfigFolder& folder) {
    const Json shipped = folder.largest_machine(device.name);
    if (shipped.is_null() && !flags.link_GBps)
        throw UserError("command line: --link-GBps is missing: no topology of " + device.name +
                        " tells what one of its links achieves");
    Link link{.latency = sourced(0.9, "estimate: two hops of 0.45 us (AMD-AGI/Primus collective_args.py)")};
    if (!shipped.is_null()) {
        // The smallest of several groups of parallel links is one link.
        const Json& group = *std::ranges::min_element(shipped.at("fabric"), {}, [](const Json& one) {
            return one.at("bandwidth_GBps").at("value").get<double>();
        });
        const Json& rate = group.at("bandwidth_GBps");
        const bool by_switch = group.at("type") == "switch";
        link.GBps = rate.at("value").get<double>() / (by_switch ? device.links : 1);
        link.source = shipped.at("name").get<std::string>() + ": " + rate.at("source").get<std::string>();
        link.latency = group.at("latency_us");
    }
    if (flags.link_GBps) {
        link.GBps = *flags.link_GBps;
        link.source = "--link-GBps";
    }
    return link;
}

Json rate(int links, const Link& link, const std::string& from) {
    return sourced(links * link.GBps, "derived: " + std::to_string(links) +
                                          (links == 1 ? " link" : " links") + " (" + from + ") of " +
                                          link.source);
}

/// GPUs joined by nothing but PCIe, as one switch.
Json pcie_group(const MachineDescription& machine) {
    // What NCCL counts for 16 lanes (src/graph/topo.h, and the "PCI[24.0]" of its log for the fourth generation)
    const std::map<int, double> GBps{{3, 12}, {4, 24}, {5, 48}, {6, 96}};
    const int generation = machine.pcie_generation == 0 ? 4 : machine.pcie_generation;
    return {{"type", "switch"},
            {"name", "pcie"},
            {"bandwidth_GBps",
             sourced(GBps.at(generation),
                     "estimate: NCCL's src/graph/topo.h counts this for 16 lanes of PCIe " +
                         std::to_string(generation) +
                         (machine.pcie_generation == 0 ? ", and the file does not say which it is" : ""))},
            {"latency_us", sourced(1.8, "estimate: twice that of a switch of NVLinks")}};
}

/// The direct links: a full mesh where every pair has as many, else a group for each number of parallel links.
void add_links(Json& fabric, const MachineDescription& machine, const Link& link) {
    std::map<int, Json> pairs;  // by number of links
    for (const auto& [pair, count] : machine.links)
        pairs[count].push_back({static_cast<std::size_t>(pair.first), static_cast<std::size_t>(pair.second)});
    const auto all = static_cast<std::size_t>(machine.gpus) * static_cast<std::size_t>(machine.gpus - 1) / 2;
    for (const auto& [count, of_count] : pairs) {
        Json group{{"type", of_count.size() == all ? "full_mesh" : "links"}};
        if (of_count.size() != all) group["pairs"] = of_count;
        group["bandwidth_GBps"] = rate(count, link, machine.from);
        group["latency_us"] = link.latency;
        fabric.push_back(std::move(group));
    }
}

/// Whether links lead from the first GPU to every other.
bool are_all_joined(const MachineDescription& machine) {
    if (!machine.to_switch.empty()) return true;
    std::set<int> reached{0};
    for (std::size_t before = 0; before != reached.size();) {
        before = reached.size();
        for (const auto& [pair, count] : machine.links) {
            if (reached.contains(pair.first)) reached.insert(pair.second);
            if (reached.contains(pair.second)) reached.insert(pair.first);
        }
    }
    return static_cast<int>(reached.size()) == machine.gpus;
}

/// Where nvidia-smi shows more links of a GPU than it has, they lead to a switch that all pairs share.
void put_behind_switch(MachineDescription& machine, const KnownDevice& device) {
    if (machine.links.empty() || !machine.counts_links || device.links == 1) return;
    std::vector<int> seen(static_cast<std::size_t>(machine.gpus));
    int most = 0;
    for (const auto& [pair, count] : machine.links) {
        for (const int gpu : {pair.first, pair.second}) seen[static_cast<std::size_t>(gpu)] += count;
        most = std::max(most, count);
    }
    if (*std::ranges::max_element(seen) <= device.links) return;
    machine.to_switch.assign(static_cast<std::size_t>(machine.gpus), most);
    machine.links.clear();
}

Json topology_json(const TopologyFlags& flags, MachineDescription machine, const KnownDevice& device,
                   const ConfigFolder& folder) {
    put_behind_switch(machine, device);
    Json fabric = Json::array();
    if (machine.has_links()) {
        const Link link = link_of(flags, device, folder);
        if (!machine.to_switch.empty()) {
            const auto [least, most] = std::ranges::minmax_element(machine.to_switch);
            if (*least != *most)
                throw UserError(
                    flags.from + ": GPUs have " + std::to_string(*least) + " to " + std::to_string(*most) +
                    " links to switches, expected as many of each (a link is down, or was not seen)");
            fabric.push_back({{"type", "switch"},
                              {"name", "nvswitch"},
                              {"bandwidth_GBps", rate(*most, link, machine.from)},
                              {"latency_us", link.latency}});
        }
        add_links(fabric, machine, link);
    }
    if (!are_all_joined(machine)) fabric.push_back(pcie_group(machine));
    return {{"schema", 1},
            {"name", flags.name},
            {"description",
             std::to_string(machine.gpus) + " x " + device.name + ", joined as " + machine.from + " says."},
            {"device", device.name + ".json"},
            {"nodes", 1},
            {"gpus_per_node", machine.gpus},
            {"fabric", fabric}};
}

/// The file's name as a name of a topology.
std::string name_of_file(const fs::path& file) {
    std::string name;
    for (const char c : file.stem().string())
        name += std::isalnum(static_cast<unsigned char>(c)) != 0
                    ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                    : '_';
    name.erase(0, std::min(name.find_first_not_of('_'), name.size()));
    return name.empty() ? "machine" : name;
}

void execute(TopologyFlags flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    if (flags.name.empty()) flags.name = name_of_file(flags.from);
    const MachineDescription machine = read_machine_description(flags.from);
    const KnownDevice device = device_of(flags, machine, folder);
    const Json json = topology_json(flags, machine, device, folder);
    const fs::path file =
        (flags.out.empty() ? folder.folder("topologies") : fs::path(flags.out)) / (flags.name + ".json");
    // Mistakes, such as a name with other letters, are told with their places in the file.
    const Topology checked(ConfigObject(json, file.string()), folder.device(device.name));
    if (fs::exists(file))
        throw UserError(file.string() + ": exists already; remove it, or choose another name or --out");
    if (!flags.out.empty()) make_folder(flags.out);
    require_writable(file);
    write_file_atomically(file, in_lines(json) + "\n");
    std::string text = "from " + machine.from + ":\n  " + file.string() + "\n" +
                       std::to_string(machine.gpus) + " x " + device.name;
    if (json.at("fabric").back().value("name", "") == "pcie")
        text += ", of which some are joined by PCIe only: its rate is an estimate";
    if (!machine.counts_links && machine.has_links())
        text +=
            "; rocm-smi does not say how many links join two GPUs: one is taken (RCCL's XML says it: "
            "NCCL_TOPO_DUMP_FILE)";
    if (machine.nics > 0)
        text += "; " + std::to_string(machine.nics) + " NICs are left out, because one node has no network";
    print(text + "\nsim --topology " + (flags.out.empty() ? flags.name : file.string()) +
          " --schedule shard_p2p runs it\n");
}

}  // namespace

void add_new_topology_command(CLI::App& group) {
    CLI::App* command = group.add_subcommand(
        "topology", "A topology of one node from what NCCL, nvidia-smi or rocm-smi say of a machine");
    auto flags = std::make_shared<TopologyFlags>();
    command->add_option("name", flags->name, "Name of the topology; default: the file's name");
    command
        ->add_option(
            "--from", flags->from,
            "File that NCCL_TOPO_DUMP_FILE made (NCCL, RCCL), or output of nvidia-smi topo -m or rocm-smi --showtopo")
        ->required();
    command->add_option("--device", flags->device, "Device of its GPUs; default: by the PCI ids of the file");
    command
        ->add_option("--link-GBps", flags->link_GBps,
                     "Usable rate of one link in one direction; default: of the device's shipped topology")
        ->check(CLI::PositiveNumber);
    command->add_option("--out", flags->out, "Folder of the file; default: where the shipped ones are");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
