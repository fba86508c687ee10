#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace overlap {

/// How the GPUs of a node are joined, as another program describes it.
struct MachineDescription {
    std::string from = {};                 ///< "NCCL's XML"
    std::string vendor = {}, device = {};  ///< PCI ids of the GPUs, "0x10de" and "0x2330"; empty if not known
    int gpus = 0;
    std::map<std::pair<int, int>, int> links =
        {};                           ///< of pairs of GPUs, the lower number first: direct links
    std::vector<int> to_switch = {};  ///< by GPU: links to NVSwitches; empty: none
    bool counts_links = true;         ///< whether the numbers of links are known; else 1 stands for some
    int pcie_generation = 0;          ///< 0: not known
    int nics = 0;

    bool has_links() const { return !links.empty() || !to_switch.empty(); }
};

/// Reads what NCCL and RCCL dump (NCCL_TOPO_DUMP_FILE), nvidia-smi topo -m, or rocm-smi --showtopo prints. Throws
/// UserError for anything else.
MachineDescription read_machine_description(const std::filesystem::path& path);

MachineDescription read_nccl_xml(const std::string& text, const std::string& origin);
/// The matrices of nvidia-smi topo -m and of rocm-smi --showtopo.
MachineDescription read_nvidia_matrix(const std::string& text, const std::string& origin);
MachineDescription read_rocm_matrices(const std::string& text, const std::string& origin);

}  // namespace overlap
