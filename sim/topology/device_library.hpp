#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/core/operators.hpp"
#include "sim/topology/device_launch.hpp"

namespace overlap {

enum class CollectivePattern { direct, ring };
inline const std::array<std::string, 2> collective_pattern_names{"direct", "ring"};
enum class Summing { gpus, switches };
inline const std::array<std::string, 2> summing_names{"gpus", "switches"};

/// Collectives of the vendor's library, measured: group "collective_library" of a device.
struct DeviceLibrary {
    /// For evidence_of, which reads the file.
    template <class T>
    static constexpr Field<T> held_out() {
        return Field<T>::checked(
                   "error_pct",
                   "Mean |predicted / measured - 1| on sizes left for checking, which the source states.")
            .plain_in({0, 1000})
            .or_else("not known");
    }

    /// Time = latency + bus bytes / bus rate, where bus bytes are (P−1)/P of the operand, twice that for
    /// all_reduce (nccl-tests' definition).
    struct Line {
        Seconds latency;
        BytesPerSecond bus;                             ///< with all channels
        std::map<int, BytesPerSecond> bus_by_channels;  ///< with fewer; empty: not measured

        static std::span<const Field<Line>> fields() {
            static const std::array rows{
                field<&Line::latency>("latency_us", "Time of a collective of no bytes."),
                field<&Line::bus>("bus_GBps", "Bus rate with all channels, as nccl-tests define it.")
                    .following("ports_GBps"),
                held_out<Line>()};
            return rows;
        }
    };
    /// Measured times by number of GPUs: bytes of the operand, rising, and time. Between them and beyond the last
    /// time is a line; below the first it is the first one's.
    using TimesByRanks = std::map<int, std::vector<std::pair<Bytes, Seconds>>>;
    struct Fit : Line {
        /// Lines of the protocols for small and for the smallest operands; the fastest line is used.
        std::optional<Line> small = {}, smallest = {};
        TimesByRanks times = {};  ///< they replace the lines, with all channels
        Summing sums = Summing::gpus;

        static std::span<const Field<Fit>> fields() {
            static const std::array rows{field<&Fit::sums>(
                "sums", summing_names,
                "Who adds. gpus: on links the operand is the bus bytes. switches: the "
                "switches add (NVLink SHARP), so the operand goes through a GPU's port once each way.")};
            return rows;
        }
    };
    /// All-reduces by a kernel of inference, measured: group "all_reduce_kernels" of the library's, by the kernel's
    /// name.
    struct AllReduce {
        std::string name;     ///< whose, with version
        double channels = 0;  ///< compute units that it holds
        TimesByRanks times;

        static std::span<const Field<AllReduce>> fields() {
            static const std::array rows{
                field<&AllReduce::channels>("channels", "Compute units that the kernel holds.")
                    .whole()
                    .in({1, 1024})};
            return rows;
        }
    };
    std::map<CollectiveKernel, AllReduce> all_reduces;
    double channels = 0;
    double clock_share = 1;
    Residency residency = Residency::shared;
    CollectivePattern pattern = CollectivePattern::direct;
    std::map<CollectiveKind, Fit> collectives;
    std::string name;  ///< library and version: "NCCL 2.29.2", "RCCL, 64 channels"

    static std::span<const Field<DeviceLibrary>> fields() {
        using D = DeviceLibrary;
        // clang-format off
        static const std::array rows{
            field<&D::channels>("channels", "Compute units that the library's kernel holds.").whole().in({1, 1024}),
            field<&D::clock_share>("clock_share", "Share of a collective's time that goes with the clock of its compute units; "
                "the rest waits for links.").in({0.0, 1.0}).optional(),
            field<&D::residency>("residency", residency_names, "What becomes of the library's kernel beside a GEMM "
                "where launch.residency is shared. shared: the kernel finds compute units at once. tiled: the kernel "
                "gets all units that it needs when tiles of the GEMM leave them, if its priority is higher, else when "
                "the GEMM has no tiles left for them. persistent: the kernel waits for the GEMM's end."),
            field<&D::pattern>("pattern", collective_pattern_names, "direct: bytes go over the routes to all peers. "
                "ring: bytes go from neighbour to neighbour, in a library that is simulated and not measured: each "
                "step takes the link's latency and the last sum is not hidden, on top of latency_us and bus_GBps.")};
        // clang-format on
        return rows;
    }
};

}  // namespace overlap
