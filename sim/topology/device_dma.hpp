#pragma once

#include <optional>

#include "sim/core/fields.hpp"

namespace overlap {

enum class QueueOrder { fifo, round_robin, unspecified };
inline const std::array<std::string, 3> queue_order_names{"fifo", "round_robin", "unspecified"};
enum class DmaQueues { by_peer, shared };
inline const std::array<std::string, 2> dma_queues_names{"by_peer", "shared"};
enum class PullServer { receiver, sender };
inline const std::array<std::string, 2> pull_server_names{"receiver", "sender"};

/// Commands of DMA engines beside a plain copy: group "commands" of "dma".
struct DeviceDmaCommands {
    Seconds release, next_command, next_start;
    BytesPerSecond broadcast;

    static std::span<const Field<DeviceDmaCommands>> fields() {
        using D = DeviceDmaCommands;
        static const std::array rows{
            field<&D::release>("release_us",
                               "From a write to memory until an engine that polls this memory goes on."),
            field<&D::next_command>("next_command_us", "command_us of each further copy of a batch."),
            field<&D::next_start>("next_start_us",
                                  "start_us of each further copy of a batch, beside the bytes before it."),
            field<&D::broadcast>("broadcast_GBps",
                                 "What one engine that broadcasts writes, to both GPUs together.")
                .following("link_GBps")};
        return rows;
    }
};

/// The phases of one copy: in group "dma" of a device. A copy takes command, schedule (before the engine), start, link
/// latency, bytes / rate (on the engine), completion.
struct DeviceDmaPhases {
    Seconds command, schedule, start, completion, push_dependency;
    Seconds pull_start, pull_schedule, queued_launch, completions_apart;
    Bytes ramp, strided_run;

    static std::span<const Field<DeviceDmaPhases>> fields() {
        using D = DeviceDmaPhases;
        // clang-format off
        static const std::array rows{
            field<&D::command>("command_us", "Writing the command of a copy and ringing the doorbell."),
            field<&D::schedule>("schedule_us", "From the doorbell until the engine takes the command."),
            field<&D::start>("start_us", "From taking the command to the first byte, without the link's latency."),
            field<&D::pull_start>("pull_start_us", "start_us of a copy that the receiver issues.").or_as("start_us"),
            field<&D::pull_schedule>("pull_schedule_us", "schedule_us of a pull that the sender serves. It begins when "
                "the receiver's stream has come to the copy.").or_as("schedule_us"),
            field<&D::completion>("completion_us", "From the last byte until the waiter sees the end."),
            field<&D::push_dependency>("push_dependency_us",
                "Extra delay of a task of another stream or GPU that waits for a push.").optional(),
            field<&D::queued_launch>("queued_launch_us", "Copies of a GPU are issued one at a time; one that had to "
                "wait for another takes this time instead of command_us and schedule_us. 0: side by side.").optional(),
            field<&D::completions_apart>("completions_apart_us",
                "The ends of a GPU's copies are seen at least this far apart.").optional(),
            field<&D::ramp>("ramp_bytes", "The first bytes of a copy, which move at half the rate."),
            field<&D::strided_run>("strided_run_bytes", "Contiguous run at which a strided (2-D) copy reaches half the "
                "rate of a contiguous one: factor run / (run + this).")};
        // clang-format on
        return rows;
    }
};

/// Copy engines and their queues: group "dma" of a device.
struct DeviceDma {
    int peer_engines = 1;
    DmaQueues queues = DmaQueues::by_peer;
    QueueOrder order = QueueOrder::fifo;
    PullServer pulls = PullServer::receiver;
    BytesPerSecond engine;
    Seconds switch_over, poll, first_poll;
    int event_queues = 0;
    DeviceDmaPhases phases;
    std::optional<DeviceDmaCommands> commands;  ///< none: plain copies only

    static std::span<const Field<DeviceDma>> fields() {
        using D = DeviceDma;
        // clang-format off
        static const std::array rows{
            field<&D::peer_engines>("peer_engines",
                "Engines that serve copies to peers at the same time.").in({1, 1024}),
            field<&D::queues>("queues", dma_queues_names, "Where copies wait: in a queue for each engine, which serves "
                "certain peers, or in one queue for all engines."),
            field<&D::order>("order", queue_order_names, "Which of several waiting copies an engine takes next. "
                "unspecified: an order that cannot be known beforehand; each simulation draws one from its seed."),
            field<&D::pulls>("pulls_served_by", pull_server_names,
                "Whose engine serves a copy that the receiver issues. The sender's engine serves pulls in the order in "
                "which they were enqueued: a pull that is not ready blocks those behind it."),
            field<&D::engine>("engine_GBps", "What one engine sustains in total.").following("link_GBps"),
            field<&D::switch_over>("switch_us",
                "Added to start_us where the engine served a copy of another stream before.").optional(),
            field<&D::poll>("poll_us", "The receiver polls at this interval for the end of a pull that the sender "
                "serves. 0: the receiver is told, after completion_us.").in({0.1, 1e6}).optional(),
            field<&D::first_poll>("first_poll_us",
                "From when the receiver's stream began to wait to the first poll.").only_with("poll_us"),
            field<&D::event_queues>("event_queues",
                "Number of event queues of a GPU. Awaited ends of pulls are assigned to the queues round robin and seen in "
                "order within a queue; a stream continues when its end has been seen. 0: streams continue at once.").in({1, 1024}).only_with("poll_us").optional()};
        // clang-format on
        return rows;
    }
};

}  // namespace overlap
