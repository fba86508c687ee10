#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/calibration/hip/replay/json_value.hpp"

namespace overlap::hip {

/// A task of a plan as one rank has it (sim/plan/format.md): a line of "tasks", or of an "each_rank" of it.
class PlanLine {
public:
    PlanLine(const JsonValue& json, int rank, int gpus) : json_(json), rank_(rank), gpus_(gpus) {}

    const JsonValue& json() const { return json_; }
    int rank() const { return rank_; }
    /// The value that this rank has. Throw UserError, `at` also if the key is missing.
    const JsonValue* find(std::string_view key) const;
    const JsonValue& at(std::string_view key) const;
    /// The number of a key that may be left out.
    std::int64_t whole(std::string_view key, std::int64_t otherwise) const;
    /// A rank: a number, or "+1" from this one on.
    int rank_at(std::string_view key) const { return rank_of(at(key)); }
    int rank_of(const JsonValue& value) const;
    std::string stream() const;
    /// The simulator's name of the task's span (Task::name in sim/core/task_graph.hpp).
    std::string name() const;

private:
    int rank_after(int offset) const { return ((rank_ + offset) % gpus_ + gpus_) % gpus_; }

    const JsonValue& json_;
    int rank_, gpus_;
};

/// All tasks of a plan, in the order in which they are enqueued.
class PlanLines {
public:
    PlanLines(const JsonValue& tasks, int gpus);

    const std::vector<PlanLine>& tasks() const { return tasks_; }
    /// What a task waits for. Throws UserError if one of these is no task before it.
    std::vector<std::size_t> waits_of(std::size_t task) const;

private:
    struct Line {
        std::size_t first, step;  ///< the task of rank 0, and from a rank's task to the next; 0: one task
    };
    void add(const JsonValue& line);
    const Line& line_called(const JsonValue& value) const;

    int gpus_;
    std::vector<Line> lines_;
    std::map<std::string, std::size_t> named_;
    std::vector<PlanLine> tasks_;
};

}  // namespace overlap::hip
