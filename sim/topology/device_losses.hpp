#pragma once

#include <map>

#include "sim/core/dtype.hpp"
#include "sim/core/fields.hpp"

namespace overlap {

/// Kinds of work that can have weights of their own (stream: local copies, reductions, element-wise).
enum class TaskClass { gemm, copy_dma, copy_cu, stream, collective };
inline const std::array<std::string, 5> task_class_names{"gemm", "copy_dma", "copy_cu", "stream",
                                                         "collective"};
inline const std::array<std::string, 5> weighted_resources{"cu", "hbm", "dma", "remote_read", "link"};
inline constexpr Range weight_range{1e-3, 1e3};

/// Losses beyond the sharing of compute units, HBM and links, as shares of the rate without them: group
/// "interference" of a device.
struct DeviceInterference {
    double compute_lost_to_dma = 0, compute_lost_to_copy_kernels = 0, dma_lost_to_compute = 0;
    double gemm_slowed_beside_dma = 0;
    double channels_per_engine_unit = 0;  ///< 0: library collectives take units of no engine
    double gemm_slowed_beside_library = 0, collectives_slowed_beside_gemms = 0;
    double late_ranks_waves = 0;
    /// Where a resource is short ("hbm", "link", … as in ResourceTable), the share of a class of tasks goes
    /// with its weight; 1 where not given. By resource, then by task class.
    std::map<std::string, std::array<double, 5>> weights;

    static std::span<const Field<DeviceInterference>> fields() {
        using D = DeviceInterference;
        constexpr Range loss{0.0, 0.95};
        // clang-format off
        static const std::array rows{
            field<&D::compute_lost_to_dma>("compute_lost_to_dma", "Share of GEMM rate lost on a GPU whose DMA copies "
                "in and out run at the full rate of its links.").in(loss),
            field<&D::compute_lost_to_copy_kernels>("compute_lost_to_copy_kernels",
                "The same for copy kernels, beyond the compute units that they hold.").in(loss),
            field<&D::dma_lost_to_compute>("dma_lost_to_compute",
                "Share of DMA rate lost while a GEMM runs on the same GPU.").in(loss),
            field<&D::gemm_slowed_beside_dma>("gemm_slowed_beside_dma",
                "Share of GEMM rate lost while any DMA copy from or to the GPU runs, whatever the copy's rate. The "
                "larger of both losses counts.").in(loss).optional(),
            field<&D::channels_per_engine_unit>("channels_per_engine_unit", "A library's collective of c channels "
                "takes floor(c / this) - 1 compute units of every shader engine, at least 1 and at most 3. GEMMs whose calibration counts engines take as many waves as the units left need.")
                .in({1, 1024}).optional(),
            field<&D::gemm_slowed_beside_library>("gemm_slowed_beside_library", "Share of GEMM rate lost while a "
                "library's collective runs, for each unit that the collective takes of every engine; the loss of these units "
                "themselves is not in it.").in(loss).optional()
                .only_with("channels_per_engine_unit"),
            field<&D::collectives_slowed_beside_gemms>("collectives_slowed_beside_gemms", "Share of a channel's rate lost beside a "
                "GEMM, measured with few channels. With many channels the links limit, and the loss is smaller.")
                .in(loss).optional().only_with("channels_per_engine_unit"),
            field<&D::late_ranks_waves>("late_ranks_waves", "Waves of GEMM tiles for which a library's collective of higher "
                "priority, which has its units, waits for the slowest rank.")
                .in({0, 16}).optional().only_with("channels_per_engine_unit")};
        // clang-format on
        return rows;
    }
};

/// How GPUs of one kind differ: group "variation" of a device.
struct DeviceVariation {
    double gpu_speed = 0;

    static std::span<const Field<DeviceVariation>> fields() {
        static const std::array rows{
            field<&DeviceVariation::gpu_speed>("gpu_speed_spread",
                                               "Standard deviation of the time of the same GEMM from GPU to "
                                               "GPU, as a share of its mean.")
                .in({0.0, 0.5})};
        return rows;
    }
};

/// What power goes into; models/work_energy.hpp says how it adds up: group "energy" of a device.
struct DeviceEnergy {
    Watts idle, active;
    std::map<DType, JoulesPerFlop> gemm;  ///< "bf16_pJ_per_flop", by type of the operands
    JoulesPerByte hbm, link, copy_kernel;
    JoulesPerByte library = {}, framework_sum = {};
    JoulesPerByte of_library() const { return library > JoulesPerByte() ? library : copy_kernel; }
    double power_exponent = 0;  ///< 0: not known
    double clock_exponent = 1;
    double spread = 0;

    static std::span<const Field<DeviceEnergy>> fields() {
        using D = DeviceEnergy;
        static const std::array rows{
            field<&D::idle>("idle_W", "Power of a GPU that does nothing, its clock up."),
            field<&D::active>("active_W", "Power beyond idle_W while anything runs on the GPU."),
            field<&D::hbm>("hbm_pJ_per_byte", "Energy of a byte read from or written to HBM."),
            field<&D::link>(
                "link_pJ_per_byte",
                "Energy of a byte that comes from another GPU of the node, beyond its HBM accesses; "
                "a DMA engine's part is in it."),
            field<&D::copy_kernel>("copy_kernel_pJ_per_byte",
                                   "Extra energy of such a byte where a kernel moves it."),
            field<&D::library>("library_pJ_per_byte",
                               "Extra energy of such a byte where a library's collective moves it. Left out: "
                               "copy_kernel_pJ_per_byte.")
                .optional(),
            field<&D::framework_sum>("framework_sum_pJ_per_byte",
                                     "Extra energy of a byte that a framework's sum reads or writes.")
                .optional(),
            field<&D::power_exponent>(
                "power_exponent",
                "Exponent e: at the power limit, the power of a GEMM's FLOPs is proportional to speed^e. Steady "
                "states need it.")
                .in({1, 10})
                .optional(),
            field<&D::clock_exponent>(
                "clock_exponent",
                "Exponent e: at the power limit, the clock is proportional to (GEMM speed)^e. Attention and kernels of a recorded time "
                "slow down as the clock does; of a library's collective, its clock_share does.")
                .in({1, 10})
                .optional(),
            field<&D::spread>(
                "power_spread",
                "Standard deviation of the power that the same work takes from GPU to GPU, as a share of its "
                "mean. In a steady state the GPU that takes most sets the pace of all.")
                .in({0.0, 0.5})
                .optional()};
        return rows;
    }
};

}  // namespace overlap
