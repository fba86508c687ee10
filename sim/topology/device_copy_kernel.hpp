#pragma once

#include "sim/core/fields.hpp"

namespace overlap {

/// What kernel copies to peers lose beside GEMMs and sums of their GPU: in group "copy_kernel".
struct DeviceCopiesBeside {
    double rate_beside_gemms = 1, rate_beside_sums = 1;
    Bytes cache_beside_gemms, cache_beside_large_tiles;
    double large_tile = 0;
    int gemm_cluster = 1, paired_blocks = 0;

    static std::span<const Field<DeviceCopiesBeside>> fields() {
        using D = DeviceCopiesBeside;
        // clang-format off
        static const std::array rows{
            field<&D::rate_beside_gemms>("rate_beside_gemms", "Share of a compute unit's rate that copies have "
                "while a GEMM runs on their GPU, where blocks_per_unit is more than 1.").in({0.01, 1}).optional(),
            field<&D::rate_beside_sums>("rate_beside_sums", "Share of a compute unit's rate that copies to and from peers "
                "have while a schedule's sum runs on their GPU, where blocks_per_unit is more than 1.")
                .in({0.01, 1}).optional(),
            field<&D::cache_beside_gemms>("cache_beside_gemms_bytes", "First-level cache that a library GEMM's shared "
                "memory leaves of a compute unit. 0: all that copies need.").optional(),
            field<&D::cache_beside_large_tiles>("cache_beside_large_tiles_bytes",
                "The same of GEMMs whose tiles have more than large_tile_elements.").optional(),
            field<&D::large_tile>("large_tile_elements", "Elements of C in a tile beyond which a library's kernel has "
                "one stage less in shared memory. 0: not known.").in({1, 1e9}).optional(),
            field<&D::gemm_cluster>("gemm_cluster_units", "Compute units next to each other that a cluster of a library GEMM's "
                "thread blocks needs. A copy kernel's block that came first, on one of them, keeps it from the others.")
                .in({1, 2}).optional(),
            field<&D::paired_blocks>("paired_blocks", "How many of the thread blocks that come first stand two by two, on both "
                "units of a cluster. Each further one stands on one unit of a cluster of its own.").in({0, 4096}).optional()};
        // clang-format on
        return rows;
    }
};

/// Copies to peers by compute units: group "copy_kernel" of a device.
struct DeviceCopyKernel {
    Seconds launch, completion, queued_launch, completions_apart;
    BytesPerSecond link_per_cu, remote_read;
    double saturation = 1, link_overhead = 0, crossing_loss = 0;
    int default_cus = 1, blocks_per_unit = 1;
    Bytes peer_loads, local_loads;
    DeviceCopiesBeside beside;

    static std::span<const Field<DeviceCopyKernel>> fields() {
        using D = DeviceCopyKernel;
        // clang-format off
        static const std::array rows{
            field<&D::launch>("launch_us", "From the queue to the first byte, without the link's latency."),
            field<&D::completion>("completion_us", "From the last byte until the waiter sees the end."),
            field<&D::link_per_cu>("link_GBps_per_cu", "Rate of the first compute unit on a link: r in the rate of n "
                "units on a link of rate L, L * (1 - exp(-(n*r/L)^s))^(1/s)."),
            field<&D::saturation>("saturation", "Sharpness s of that rate: 1 is a slow approach to the link's rate, a "
                "large value a sharp corner.").in({0.5, 100}).optional(),
            field<&D::remote_read>("remote_read_GBps", "Cap on the sum of remote reads by one GPU's compute units.")
                .following("ports_GBps"),
            field<&D::default_cus>("default_cus",
                "Thread blocks of a transfer where the run does not say how many.").in({1, 1024}),
            field<&D::queued_launch>("queued_launch_us", "Instead of launch_us where another kernel copy of the GPU is "
                "being launched, which goes first. 0: side by side.").optional(),
            field<&D::completions_apart>("completions_apart_us",
                "The ends of a GPU's kernel copies are seen at least this far apart.").optional(),
            field<&D::link_overhead>("link_overhead",
                "Bytes on the link beyond those copied, for each byte copied: headers.").optional(),
            field<&D::crossing_loss>("crossing_loss", "Share of a link's rate that pushes lose on average where several GPUs "
                "push to several at once over links that the copies share.").in({0, 0.9}).optional(),
            field<&D::blocks_per_unit>("blocks_per_unit",
                "Thread blocks of copies that fit on a compute unit; together they run at the rate of one. Above 1, copies "
                "take whole units.").in({1, 32}).optional(),
            field<&D::peer_loads>("peer_loads_bytes", "Loads from a peer that a compute unit has under way at its full "
                "rate. With less first-level cache the unit copies as much slower. 0: any cache is enough.").optional(),
            field<&D::local_loads>("local_loads_bytes", "The same of loads from the GPU's own memory.").optional()};
        // clang-format on
        return rows;
    }
};

/// Kernels that stream local memory (packs, scatters, reductions, element-wise operators): in group
/// "copy_kernel", too.
struct DeviceStream {
    Seconds start, load_start, sum_block, sum_block_part;
    BytesPerSecond cu, cache, framework_sum, sum;

    static std::span<const Field<DeviceStream>> fields() {
        using D = DeviceStream;
        // A compute unit's streaming rate is taken to go with its clock, as configs/devices/mi100.json does.
        constexpr std::string_view clock = "peak_clock_GHz";
        // clang-format off
        static const std::array rows{
            field<&D::cu>("cu_GBps",
                "Streaming rate of one compute unit in local memory, read plus written.").following(clock),
            field<&D::cache>("cache_GBps",
                "Rate of all compute units in the last-level cache, of what fits. 0: as HBM.").optional()
                .following("compute_units * peak_clock_GHz"),
            field<&D::sum>("sum_GBps_per_cu", "Rate, read plus written, at which a compute unit works off the thread blocks of a "
                "schedule's sum, two of them at a time. Such sums take whole compute units, which GEMMs leave. 0: they share "
                "the units with GEMMs.").optional().following(clock),
            field<&D::sum_block>("sum_block_us", "Time of a compute unit for each thread block of a sum besides.").optional(),
            field<&D::sum_block_part>("sum_block_part_us", "The same for each part that is added up.").optional(),
            field<&D::framework_sum>("framework_sum_GBps", "Highest rate at which a framework's sum over a dimension "
                "writes its result, as in async-TP. 0: as any sum.").optional(),
            field<&D::start>("stream_start_us",
                "Until the first bytes of a kernel that streams local memory have come.").optional(),
            field<&D::load_start>("load_start_us", "In addition to stream_start_us, for kernels that wait for their loads "
                "(sums, pure reads).").optional()};
        // clang-format on
        return rows;
    }
};

}  // namespace overlap
