#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/plan/task_list.hpp"
#include "sim/schedules/placement.hpp"

namespace overlap {

/// What a plan's "tasks" are read into.
struct PlanLines {
    TaskList list;
    std::vector<Operands> operands;  ///< by task of the list; empty where a task names no places
};

/// What the lines of "tasks" refer to.
struct PlanFrame {
    int gpus = 0;
    std::vector<std::string> streams;  ///< side streams, by number
    std::size_t buffers = 0;
};

/// Reads "tasks" of a plan. Throws UserError.
PlanLines read_plan_lines(ConfigObject& plan, const PlanFrame& frame);

/// A list of [buffer, row, column, rows, columns]. Throws UserError.
std::vector<Block> read_blocks(const ConfigObject& from, const std::string& key, const Json& value,
                               std::size_t buffers);

}  // namespace overlap
