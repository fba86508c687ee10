#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/graph_size.hpp"
#include "sim/core/what_if.hpp"
#include "sim/schedules/parameters.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Turns a workload into a task graph: tasks, their streams and their order. Contract: a pure function of its
/// arguments that never sees time. On every rank the tasks do exactly the FLOPs of the workload and move
/// exactly the bytes of its collective. With one GPU the graph is the GEMM alone. Throws UserError for an
/// unsupported workload or parameter.
class Schedule {
public:
    virtual ~Schedule() = default;
    virtual TaskGraph build(const Workload& workload, const Topology& topology,
                            const ScheduleParams& params) const = 0;
    /// Exact size of the graph that `build` returns, without building it. Throws like `build`.
    virtual GraphSize size(const Workload& workload, const Topology& topology,
                           const ScheduleParams& params) const = 0;
    /// Whether `build` adds the tasks of representatives only where `params.transfers.alike` says who is alike.
    virtual bool builds_representatives(const Workload&, const ScheduleParams&) const { return false; }
    /// How the schedule cuts shards, for the placement of pieces in memory;
    /// whole shards are one piece, unfused.
    virtual PiecePoint point(const ScheduleParams&) const { return {}; }
    /// Whether operators of a list outside of pairs that are cut wait for the operator before them.
    virtual bool in_sequence() const { return true; }
};

struct ScheduleEntry {
    std::string name;
    std::string summary;                           ///< transfers and GEMMs in one sentence
    std::vector<std::string> parameters;           ///< accepted names, a subset of schedule_parameters()
    std::function<bool(const Workload&)> handles;  ///< supported forms of workload
    std::unique_ptr<Schedule> (*make)() = nullptr;
    bool shard_level = false;    ///< a GEMM for each shard, which comes whole
    bool single_stream = false;  ///< one transfer stream a GPU instead of one for each peer
    /// Needs a kernel of one's own: its GEMM polls or sets flags, or stores at peers, while it runs. All other
    /// schedules run with a vendor's GEMM library plus copies.
    bool own_kernel = false;
    bool barriers = false;  ///< its ranks wait for each other in barriers of its own
    bool is_preset =
        false;  ///< of a library or a paper: a process a GPU enqueues its tasks, unless a run says else
    bool between_nodes = false;      ///< for several nodes; on one node it equals another schedule
    bool advised = true;             ///< whether `sim advise` tries it
    Json defaults = Json::object();  ///< parameters whose default differs from schedule_parameters()

    bool takes(std::string_view parameter) const;
};
using SchedulePtr = std::shared_ptr<const ScheduleEntry>;

std::span<const ScheduleEntry> schedules();
/// The entry's defaults, overridden by `given`.
Json with_defaults(const ScheduleEntry& entry, const Json& given);
/// An entry of schedules(). Throws UserError with the nearest name, also among the names in `more`.
const ScheduleEntry& find_schedule(const std::string& name, const std::vector<std::string>& more = {});
/// Throws UserError, naming the schedules that fit, if `entry` does not handle the workload's form.
void require_handled(const ScheduleEntry& entry, const Workload& workload);

/// A schedule of a library or a paper: one of schedules() with its own parameters, from a file of
/// configs/schedules (configs/schema/schedule.schema.json). It serves those workloads listed in the file that
/// its schedule serves. Runs may override its parameters. Throws UserError.
ScheduleEntry read_preset(const ConfigFile& file);
Json preset_schema();

}  // namespace overlap
