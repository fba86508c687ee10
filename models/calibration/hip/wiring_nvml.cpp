// Links and identities of NVIDIA's GPUs, from CUDA and from NVML, which is loaded at run time and declared here after
// its documented C API.
#if defined(__CUDACC__)

#include <cmath>
#include <cstdio>

#include "models/calibration/hip/gpu.hpp"
#include "models/calibration/hip/nvml.hpp"
#include "models/calibration/hip/wiring.hpp"

namespace overlap::hip {
namespace {

using Handle = void*;
constexpr int caps_nvlink = 2;       // NVML_P2P_CAPS_INDEX_NVLINK; the status 0 is "OK"
constexpr unsigned most_links = 18;  // NVML_NVLINK_MAX_LINKS

struct Nvml {
    int (*handle)(const char*, Handle*) = nullptr;
    int (*p2p)(Handle, Handle, int, int*) = nullptr;
    int (*link)(Handle, unsigned, int*) = nullptr;

    Nvml() {
        const NvmlLibrary library;
        library.load("nvmlDeviceGetHandleByPciBusId_v2", handle);
        library.load("nvmlDeviceGetP2PStatus", p2p);
        library.load("nvmlDeviceGetNvLinkState", link);
    }
};

const Nvml& nvml() {
    static const Nvml library;
    return library;
}

std::string pci_address(int gpu) {
    char bus[32] = "";
    check(hipDeviceGetPCIBusId(bus, sizeof bus, gpu));
    return bus;
}

Handle handle_of(int gpu) {
    Handle handle = nullptr;
    return nvml().handle && nvml().handle(pci_address(gpu).c_str(), &handle) == 0 ? handle : nullptr;
}

std::string text_of(const cudaUUID_t& uuid) {
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
        text += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(digits);
    }
    return text;
}

}  // namespace

Attachment attachment(int gpu) {
    hipDeviceProp_t properties;
    check(hipGetDeviceProperties(&properties, gpu));
    int engines = 0;
    check(hipDeviceGetAttribute(&engines, cudaDevAttrAsyncEngineCount, gpu));
    double links = std::nan("");
    if (const Handle handle = handle_of(gpu); handle && nvml().link) {
        links = 0;
        int active = 0;
        for (unsigned i = 0; i < most_links; ++i) links += nvml().link(handle, i, &active) == 0 && active;
    }
    return {text_of(properties.uuid), pci_address(gpu),
            "sm_" + std::to_string(properties.major) + std::to_string(properties.minor),
            static_cast<double>(engines), links};
}

std::string link_kind(int gpu, int peer) {
    const Handle from = handle_of(gpu), to = handle_of(peer);
    int status = 1;
    if (!from || !to || !nvml().p2p || nvml().p2p(from, to, caps_nvlink, &status) != 0) return "unknown";
    return status == 0 ? "nvlink" : "pcie";
}

double performance_rank(int gpu, int peer) {
    int rank = 0;
    if (cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, gpu, peer) == cudaSuccess)
        return rank;
    static_cast<void>(hipGetLastError());  // the next launch would find it
    return std::nan("");
}

}  // namespace overlap::hip
#endif
