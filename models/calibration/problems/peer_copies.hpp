#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/calibration/fits/fit_device.hpp"
#include "models/calibration/measurements/measurement_file.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

inline constexpr double mebibyte = 1 << 20;  ///< bytes

/// A `peer_copy` case (models/calibration/hip/cases/as_plans.py).
struct PeerCopies {
    Agent agent = Agent::dma;
    Direction direction = Direction::pull;
    std::string pattern;
    int gpus = 2;
    int blocks = 0;
    int chunks = 1;
    Bytes size, row;          ///< row 0: contiguous
    bool strided_to = false;  ///< the destination's rows have the source's pitch; else packed
    bool by_turns = false;    ///< the host enqueued one copy for each lane in turn; else lane after lane
    std::string call;
    bool beside_gemms = false;
    bool marked = false;   ///< an event after every copy
    bool unseen = false;   ///< no fit may see the case
    double median_us = 0;  ///< of the samples of all passes

    /// "pull all_at_once 4 GPUs 4 x 1 MiB"
    std::string name() const;
};

/// Reads the cases of those of the files `names` that `folder` has: a machine of two GPUs has no four_gpus.jsonl.
/// Passes of a case are merged. Cases enqueued by several threads are left out because their order is unknown. Sets
/// `date` to that of the last file. Throws UserError with file and line for a missing or impossible field.
std::vector<PeerCopies> measured_peer_copies(const std::filesystem::path& folder,
                                             const std::vector<std::string>& names, const HeldOut& held_out,
                                             std::string& date);

/// The copies in the order in which the host enqueued them; each lane has its own stream.
TaskGraph copy_graph(const PeerCopies& copies);

/// Makespan in µs of the copies in `graph` when nothing else runs; the median over seeds if the
/// machine leaves the order open, as it does for DMA.
double predicted_us(const PeerCopies& copies, const TaskGraph& graph, const Machine& machine);

/// "64 KiB"
std::string size_name(Bytes size);

}  // namespace overlap
