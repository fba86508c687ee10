#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/what_if.hpp"
#include "sim/schedules/parameters.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Adds the tasks of a workload, their streams and their order to an empty graph. Contract: a pure function of its
/// arguments that never sees time. On every rank the tasks do exactly the FLOPs of the workload and move exactly the
/// bytes of its collective. With one GPU the graph is the GEMM alone. Throws UserError for an unsupported workload or
/// parameter, and GraphTooLarge before it takes memory for more pieces than the graph may have tasks.
using AddTasks = void(const Workload&, const Topology&, const ScheduleParams&, TaskGraph&);

/// Turns a workload into a task graph.
struct ScheduleEntry {
    std::string name;
    std::string summary;                           ///< transfers and GEMMs in one sentence
    std::vector<std::string> parameters;           ///< accepted names, a subset of schedule_parameters()
    std::function<bool(const Workload&)> handles;  ///< supported forms of workload
    AddTasks* add_tasks = nullptr;
    /// How the schedule cuts shards; whole shards are one piece, unfused. None: as its parameters say.
    std::optional<PiecePoint> fixed_point = PiecePoint{};
    /// Whether `add_tasks` adds only the tasks of representatives where `params.transfers.alike` says who is alike.
    bool (*by_representatives)(const Workload&, const ScheduleParams&) =
        [](const Workload&, const ScheduleParams&) { return false; };
    bool in_sequence =
        true;  ///< operators of a list that are in no pair that is cut wait for the operator before them
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
    /// Reads the "params" of a run config of this schedule, without `defaults`. Throws UserError.
    ScheduleParams read(ConfigObject given, const Workload& workload, const Topology& topology) const;
    /// The task graph of a workload. Throws as `add_tasks` does.
    TaskGraph build(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                    GraphLimit limit = {}) const;
    PiecePoint point(const ScheduleParams& params) const { return fixed_point.value_or(params.point); }
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
