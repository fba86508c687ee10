#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "sim/core/config_reader.hpp"
#include "sim/core/operators.hpp"
#include "sim/core/units.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {

/// Which of several waiting tasks is served next. unspecified: none that can be told beforehand; each
/// simulation draws one from its seed.
enum class QueueOrder { fifo, round_robin, unspecified };
inline const std::array<std::string, 3> queue_order_names{"fifo", "round_robin", "unspecified"};

/// Where copies wait for DMA engines: a queue for each engine, which serves certain peers, or one for all.
enum class DmaQueues { by_peer, shared };
inline const std::array<std::string, 2> dma_queues_names{"by_peer", "shared"};

/// Whose engine serves a copy that the receiver issues (pull).
enum class PullServer { receiver, sender };
inline const std::array<std::string, 2> pull_server_names{"receiver", "sender"};

/// What becomes of a kernel that is launched while a GEMM runs on the same GPU. shared: it finds compute
/// units at once; tiled: it gets those that tiles of the GEMM leave, if its priority is higher, else waits
/// for the GEMM's end; persistent: it waits for the end, since the GEMM's thread blocks stay for all of it.
enum class Residency { shared, tiled, persistent };
inline const std::array<std::string, 3> residency_names{"shared", "tiled", "persistent"};

/// What the memory itself does with data that copies bring: it may add them to what it holds.
enum class NearMemory { none, add };
inline const std::array<std::string, 2> near_memory_names{"none", "add"};

/// How a library's collective goes to the peers: each straight to each, or from neighbour to neighbour.
enum class CollectivePattern { direct, ring };
inline const std::array<std::string, 2> collective_pattern_names{"direct", "ring"};

/// Kinds of work that can have weights of their own (stream: local copies, reductions, element-wise).
enum class TaskClass { gemm, copy_dma, copy_cu, stream, collective };
inline const std::array<std::string, 5> task_class_names{"gemm", "copy_dma", "copy_cu", "stream",
                                                         "collective"};

/// Immutable facts of one GPU, read from configs/devices/<name>.json, where every value has its source beside
/// it. What has been fitted to measurements is in configs/calibrations/<name>.json instead: values of
/// `calibrated_groups`, and GEMM parameters, which are apart.
struct DeviceSpec {
    std::string name;
    std::string description;
    double compute_units = 0;              ///< CUs (AMD) or SMs (NVIDIA)
    std::map<DType, FlopsPerSecond> peak;  ///< datasheet, dense; for reports only
    Bytes hbm_capacity;
    BytesPerSecond hbm_peak;  ///< datasheet; for reports only
    BytesPerSecond hbm;       ///< achieved by a streaming copy, read + written bytes
    Bytes last_level_cache;
    NearMemory near_memory = NearMemory::none;
    Watts board_power;  ///< limit of one GPU

    struct Launch {
        Seconds kernel;             ///< gap between two kernels queued back to back on one stream
        Seconds dependency;         ///< extra delay of a task that waits for an event of another stream
        Seconds remote_dependency;  ///< the same where the event is another GPU's
        Seconds event;              ///< more of that gap where an event is recorded in it
        Seconds flag;               ///< from a write of a flag in memory until a polling kernel has seen it
        Residency residency = Residency::shared;
    } launch;

    /// A DMA copy in order: command, schedule (before the engine), start, bytes / rate (on the engine),
    /// completion.
    struct Dma {
        /// What engines can be told beside a plain copy.
        struct Commands {
            Seconds release;           ///< from a write to memory until an engine that polls it goes on
            Seconds next_command;      ///< `command` of each further copy of a batch, back to back
            Seconds next_start;        ///< `start` of it
            BytesPerSecond broadcast;  ///< what one engine writes that broadcasts, to both GPUs together
        };

        int peer_engines = 1;  ///< engines that serve peer copies side by side
        DmaQueues queues = DmaQueues::by_peer;
        QueueOrder order = QueueOrder::fifo;
        PullServer pulls = PullServer::receiver;  ///< by the sender: as enqueued, ready or not
        BytesPerSecond engine;                    ///< what one engine sustains in total
        Seconds command, schedule, start, completion;
        Seconds pull_start;     ///< `start` of a pull
        Seconds pull_schedule;  ///< `schedule` of a pull that the sender serves; not ahead of its turn
        Seconds switch_over;    ///< more of `start`, where the engine served another stream before
        /// Not 0: copies of a GPU are issued one at a time, and one that had to wait for another takes so
        /// long instead of command and schedule.
        Seconds queued_launch;
        Seconds completions_apart;         ///< the ends of copies of a GPU are seen at least so far apart
        std::optional<Commands> commands;  ///< none: plain copies only
        /// A receiver polls for the end of what the sender's engine does for it, first so long after its
        /// stream began to wait, then at this interval; polls of its streams are apart. 0: it is told
        /// (completion).
        Seconds first_poll, poll, poll_apart;
        /// A stream's pulls are launched at least so far apart, unless each waits for the end before it to be
        /// seen: where that is an event, which a GPU looks for in so many queues by turns (Polling::queues).
        Seconds pull_step;
        int event_queues = 0;
        Seconds event;      ///< an event after a copy that the sender issues keeps the engine so much longer
        Bytes ramp;         ///< the first bytes of a copy move at half the rate
        Bytes strided_run;  ///< run length at which a strided copy reaches half the contiguous rate
    } dma;

    struct CopyKernel {
        Seconds launch, completion;
        /// Instead of `launch`, where another kernel copy of the GPU is being launched; 0: side by side.
        Seconds queued_launch;
        Seconds completions_apart;   ///< as of DMA
        Seconds pull_start;          ///< of a pull, beyond the route's latency: the request's way
        BytesPerSecond link_per_cu;  ///< rate of n compute units while the link is far away: n · r
        /// n units reach L · (1 − exp(−(n·r/L)^s))^(1/s) of a link's rate L: 1 is a slow approach, many are a
        /// sharp corner.
        double saturation = 1;
        double link_overhead = 0;  ///< bytes on the link beyond those copied, a byte: headers
        double pull_requests = 0;  ///< bytes against the direction of the copy, a byte
        double push_acknowledgements = 0;
        BytesPerSecond remote_read;  ///< cap on the sum of one GPU's remote reads by compute units
        int default_cus = 1;         ///< thread blocks of a transfer when the run does not say
        double units_per_block =
            1;  ///< compute units that a thread block keeps from others; several may share
        /// Thread blocks that a compute unit has room for; they share the rate of one.
        int blocks_per_unit = 1;
        /// Share of a unit's rate while a GEMM runs on its GPU: that of pulls, and of other copies.
        double pull_rate_beside_gemms = 1, rate_beside_gemms = 1;
        /// Loads of a unit that are under way at full rate, from a peer's memory and from its own; 0: not
        /// known.
        Bytes peer_loads, local_loads;
        /// First-level cache that a GEMM's thread block leaves of its unit (Claim::cache_left), and one with
        /// tiles of more than `large_tile` elements; 0: not known.
        Bytes cache_beside_gemms, cache_beside_large_tiles;
        double large_tile = 0;
    } copy_kernel;

    /// Kernels that stream local memory: packs, scatters, reductions, element-wise operators.
    struct Stream {
        Seconds start;               ///< until the first bytes have come
        BytesPerSecond cu;           ///< bytes/s, read + written, of a compute unit that copies
        BytesPerSecond read, write;  ///< of one that only reads or writes; 0: not known apart from `cu`
        double overlap = 1;          ///< reads and writes of a unit take the p-norm of both: 1 is the sum
        BytesPerSecond reduce;       ///< parts that a unit adds up; 0: as a copy
        double cached_loads = 0;  ///< times a unit that waits for loads is faster on the cache; 0: not known
        BytesPerSecond cache;     ///< all units, what fits into the last-level cache; 0: as HBM
        Bytes strided_run;        ///< as of DMA
    } stream;

    /// Collectives of the vendor's library, measured: time = latency + bus bytes / bus rate, where bus bytes
    /// are (P−1)/P of the operand, twice that for all_reduce (nccl-tests' definition).
    struct Library {
        struct Line {
            Seconds latency;
            BytesPerSecond bus;                             ///< with all channels
            std::map<int, BytesPerSecond> bus_by_channels;  ///< with fewer; empty: not measured
        };
        struct Fit : Line {
            std::optional<Line> small;  ///< of the protocol for small operands; the faster one is used
        };
        double channels = 0;  ///< compute units that its kernel holds
        /// What becomes of its kernel beside a GEMM where launch.residency is shared. Apart from copy
        /// kernels, since none of its thread blocks gets anywhere before all of them are on the GPU.
        Residency residency = Residency::shared;
        /// ring: of a library that is simulated, not measured; what its steps add to a line is worked out.
        CollectivePattern pattern = CollectivePattern::direct;
        std::map<CollectiveKind, Fit> collectives;
    } collective_library;

    /// Losses beyond the sharing of compute units, HBM and links; shares of the victim's rate, in [0, 1].
    struct Interference {
        double compute_lost_to_dma = 0;  ///< GEMM, while DMA moves at the full rate of the GPU's links
        double compute_lost_to_copy_kernels = 0;  ///< the same for copy kernels, besides the units they hold
        double dma_lost_to_compute = 0;           ///< DMA copies, while a GEMM runs on the same GPU
        /// GEMM, while any copy runs from or to its GPU, whatever the rate of it; the larger of the two
        /// counts.
        double gemm_slowed_beside_dma = 0;
        double gemm_slowed_beside_copy_kernels = 0;
        /// GEMM of a few waves, while kernels of copies hold any units of its GPU: its tiles are dealt to
        /// units beforehand, and those of the units that it lacks come after all others.
        /// Of a resource that is short ("hbm", "link", …, as in ResourceTable), the share of a class of tasks
        /// goes with its weight; 1 where not given.
        std::map<std::string, std::array<double, 5>> weights;  ///< by resource, then by task class
    } interference;

    /// How GPUs of one kind differ.
    struct Variation {
        double gpu_speed = 0;  ///< standard deviation of the time of the same GEMM, a share of its mean
    } variation;

    /// What power goes into; models/work_energy.hpp says how it adds up.
    struct Energy {
        Watts idle;                           ///< of a GPU that does nothing, its clock up
        Watts active;                         ///< more, while anything runs on it
        std::map<DType, JoulesPerFlop> gemm;  ///< by type of the operands
        JoulesPerByte hbm;                    ///< read or written
        JoulesPerByte link;                   ///< from one GPU to another of its node
        JoulesPerByte copy_kernel;            ///< more of those that kernels move
    };
    std::optional<Energy> energy;  ///< none: not known
};

/// Groups of a device file of which a calibration may have some keys, or all.
inline const std::array<std::string, 6> calibrated_groups{"launch",       "dma",       "copy_kernel",
                                                          "interference", "variation", "energy"};

/// Throws UserError on anything but a complete and valid device file.
DeviceSpec read_device(const std::filesystem::path& path);
/// The file and the calibration (configs/schema/calibration.schema.json) are to be complete together, and to
/// have no value twice.
DeviceSpec read_device(const std::filesystem::path& path, ConfigObject calibration);
/// The same from files that have been read; `calibration` may be null.
DeviceSpec read_device(const ConfigFile& device, const ConfigFile* calibration);

}  // namespace overlap
