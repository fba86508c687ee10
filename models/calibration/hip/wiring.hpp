#pragma once

#include <string>

namespace overlap::hip {

/// Where a GPU sits. Texts that can't be read are "unknown", numbers NaN.
struct Attachment {
    std::string uuid;
    std::string pci_address;   ///< "0000:1b:00.0"
    std::string architecture;  ///< "sm_90", "gfx942"
    double copy_engines;       ///< DMA engines that run side by side
    double fast_links;         ///< active NVLink or xGMI links of the GPU
};
Attachment attachment(int gpu);

/// "nvlink", "xgmi", "pcie" or "unknown".
std::string link_kind(int gpu, int peer);
/// Rank of the pair among all pairs, 0 the fastest, as the driver gives it; NaN if it gives none.
double performance_rank(int gpu, int peer);

}  // namespace overlap::hip
