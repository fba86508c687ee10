// Links and identities of AMD's GPUs, from HIP and from the files of the amdgpu driver (Documentation/gpu/amdgpu in
// Linux) and of its topology (/sys/class/kfd).
#if !defined(__CUDACC__)

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "models/calibration/hip/gpu.hpp"
#include "models/calibration/hip/wiring.hpp"

namespace overlap::hip {
namespace {

constexpr unsigned link_pcie = 2, link_xgmi = 4;  // HSA_AMD_LINK_INFO_TYPE_…
constexpr double topology_xgmi = 11;              // CRAT_IOLINK_TYPE_XGMI

std::string pci_address(int gpu) {
    char bus[32] = "";
    check(hipDeviceGetPCIBusId(bus, sizeof bus, gpu));
    std::string name = bus;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
}

/// Lines "name number".
std::map<std::string, double> properties_in(const std::filesystem::path& path) {
    std::map<std::string, double> result;
    std::ifstream file(path);
    std::string name;
    for (double value = 0; file >> name >> value;) result[name] = value;
    return result;
}

/// The GPU's folder of the topology, or an empty path.
std::filesystem::path topology_of(const std::string& address) {
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    if (std::sscanf(address.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) return {};
    const unsigned location = bus << 8 | device << 3 | function;
    std::error_code none;
    for (const auto& node : std::filesystem::directory_iterator("/sys/class/kfd/kfd/topology/nodes", none)) {
        const auto found = properties_in(node.path() / "properties");
        const auto is = [&](const char* name, unsigned value) {
            return found.contains(name) && found.at(name) == value;
        };
        if (found.contains("simd_count") && found.at("simd_count") > 0 && is("location_id", location) &&
            (!found.contains("domain") || is("domain", domain)))
            return node.path();
    }
    return {};
}

}  // namespace

Attachment attachment(int gpu) {
    hipDeviceProp_t properties;
    check(hipGetDeviceProperties(&properties, gpu));
    const std::string address = pci_address(gpu);
    std::string uuid;
    if (!(std::ifstream("/sys/bus/pci/devices/" + address + "/unique_id") >> uuid)) uuid = "unknown";
    Attachment result{uuid, address, properties.gcnArchName, std::nan(""), std::nan("")};
    const std::filesystem::path topology = topology_of(address);
    if (topology.empty()) return result;
    auto found = properties_in(topology / "properties");
    if (found.contains("num_sdma_engines"))
        result.copy_engines = found["num_sdma_engines"] + found["num_sdma_xgmi_engines"];
    std::error_code none;
    result.fast_links = 0;
    for (const auto& link : std::filesystem::directory_iterator(topology / "io_links", none))
        result.fast_links += properties_in(link.path() / "properties")["type"] == topology_xgmi;
    return result;
}

std::string link_kind(int gpu, int peer) {
    std::uint32_t kind = 0, hops = 0;
    if (hipExtGetLinkTypeAndHopCount(gpu, peer, &kind, &hops) != hipSuccess) {
        static_cast<void>(hipGetLastError());  // the next launch would find it
        return "unknown";
    }
    return kind == link_xgmi ? "xgmi" : kind == link_pcie ? "pcie" : "unknown";
}

double performance_rank(int gpu, int peer) {
    int rank = 0;
    if (hipDeviceGetP2PAttribute(&rank, hipDevP2PAttrPerformanceRank, gpu, peer) == hipSuccess) return rank;
    static_cast<void>(hipGetLastError());
    return std::nan("");
}

}  // namespace overlap::hip
#endif
