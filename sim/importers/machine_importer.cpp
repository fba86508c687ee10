#include "sim/importers/machine_importer.hpp"

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>

#include "sim/core/archive.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

using Element = boost::property_tree::ptree;

std::string attribute(const Element& element, const std::string& name) {
    return element.get<std::string>("<xmlattr>." + name, "");
}
int number(const Element& element, const std::string& name, int otherwise) {
    return element.get<int>("<xmlattr>." + name, otherwise);
}

/// A GPU of the file.
struct XmlGpu {
    std::string bus;
    const Element* pci = nullptr;
    const Element* gpu = nullptr;
};

/// Generation of PCIe by a link's speed: "32.0 GT/s PCIe" is the fifth.
int pcie_generation(const std::string& speed) {
    static const std::map<std::string, int> generations{{"8.0", 3}, {"16.0", 4}, {"32.0", 5}, {"64.0", 6}};
    const int* found = value_at(generations, speed.substr(0, speed.find(' ')));
    return found == nullptr ? 0 : *found;
}

void collect(const Element& parent, const std::string& bus, std::vector<XmlGpu>& gpus, int& nics) {
    for (const auto& [name, element] : parent) {
        if (name == "gpu") gpus.push_back({bus, &parent, &element});
        if (name == "net") ++nics;
        collect(element, name == "pci" ? attribute(element, "busid") : bus, gpus, nics);
    }
}

}  // namespace

// Source: github.com/NVIDIA/nccl, src/graph/xml.cc; RCCL has the same elements, and xgmi beside nvlink. Switches have
// the PCI class 0x0680xx (bridge), or are not seen in a virtual machine.
MachineDescription read_nccl_xml(const std::string& text, const std::string& origin) {
    Element root;
    std::istringstream in(text);
    try {
        boost::property_tree::read_xml(in, root);
    } catch (const boost::property_tree::xml_parser_error& error) {
        throw UserError(
            one_line(origin + ":" + std::to_string(error.line()) + ": is no XML: " + error.message()));
    }
    MachineDescription machine{.from = "the XML of NCCL or RCCL"};
    std::vector<XmlGpu> gpus;
    collect(root, "", gpus, machine.nics);
    if (gpus.empty()) throw UserError(origin + ": has no <gpu>, expected what NCCL_TOPO_DUMP_FILE names");
    std::ranges::stable_sort(gpus, {}, [](const XmlGpu& one) { return number(*one.gpu, "dev", 0); });
    machine.gpus = static_cast<int>(gpus.size());
    machine.vendor = attribute(*gpus.front().pci, "vendor");
    machine.device = attribute(*gpus.front().pci, "device");
    machine.pcie_generation = pcie_generation(attribute(*gpus.front().pci, "link_speed"));
    const auto place = [&](const std::string& bus) { return place_of(mapped(gpus, &XmlGpu::bus), bus); };
    std::vector<int> to_switch(gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i)
        for (const auto& [name, link] : *gpus[i].gpu) {
            if (name != "nvlink" && name != "xgmi") continue;
            const std::size_t other = place(attribute(link, "target"));
            const int count = std::max(1, number(link, "count", 1));
            if (other == i) continue;
            if (other < gpus.size())
                machine.links[{static_cast<int>(std::min(i, other)), static_cast<int>(std::max(i, other))}] =
                    count;
            else if (name == "nvlink")
                to_switch[i] += count;
        }
    if (*std::ranges::max_element(to_switch) > 0) machine.to_switch = to_switch;
    return machine;
}

MachineDescription read_machine_description(const std::filesystem::path& path) {
    const std::string text = decompressed(path, "a description of a machine"), origin = path.string();
    if (text.find("<system") != std::string::npos) return read_nccl_xml(text, origin);
    if (text.find("Link Type between two GPUs") != std::string::npos) return read_rocm_matrices(text, origin);
    if (text.find("GPU0") != std::string::npos) return read_nvidia_matrix(text, origin);
    if (const std::string kind = kind_of_text(text); !kind.empty()) throw UserError(origin + ": is " + kind);
    if (text.starts_with('{')) require_kind(parse_json(text, origin), origin, FileKind::topology);
    throw UserError(
        origin +
        ": is no description of a machine that is read, expected the file of NCCL_TOPO_DUMP_FILE, "
        "or what nvidia-smi topo -m or rocm-smi --showtopo prints");
}

}  // namespace overlap
