#pragma once

#include "sim/core/fields.hpp"

namespace overlap {

/// What becomes of a kernel that is launched while a GEMM runs on the same GPU.
enum class Residency { shared, tiled, persistent };
inline const std::array<std::string, 3> residency_names{"shared", "tiled", "persistent"};

/// Costs of starting work on a stream: group "launch" of a device.
struct DeviceLaunch {
    Seconds kernel, dependency, remote_dependency, event, flag;
    double gemm_first = 0.5;
    Residency residency = Residency::shared;

    static std::span<const Field<DeviceLaunch>> fields() {
        using D = DeviceLaunch;
        // clang-format off
        static const std::array rows{
            field<&D::kernel>("kernel_us", "Gap between two kernels queued back to back on one stream."),
            field<&D::dependency>("dependency_us", "Extra delay of a task that waits for an event of another stream."),
            field<&D::remote_dependency>("remote_dependency_us",
                "Extra delay of a task that waits for an event of another GPU.").or_as("dependency_us"),
            field<&D::event>("event_us", "Extra gap between two kernels of a stream where an event is recorded between "
                "them, for which another stream waits.").optional(),
            field<&D::flag>("flag_us",
                "From the write of a flag in memory until a polling kernel has seen the flag.").or_as("dependency_us"),
            field<&D::gemm_first>("gemm_first",
                "Fraction of cases in which a GEMM gets compute units before a copy kernel of another stream that waited for "
                "the GEMM before it on its stream.").in({0, 1}).optional(),
            field<&D::residency>("residency", residency_names, "What becomes of a kernel that is launched beside a "
                "GEMM. shared: the kernel finds compute units at once. tiled: the kernel gets the units that tiles of "
                "the GEMM leave, if its priority is higher, else waits for the GEMM's end. persistent: the kernel "
                "waits for the GEMM's end, because the GEMM's thread blocks stay for all of it.")};
        // clang-format on
        return rows;
    }
};

}  // namespace overlap
