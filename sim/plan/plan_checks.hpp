#pragma once

#include "sim/plan/plan.hpp"
#include "sim/plan/plan_lines.hpp"

// What a plan's reader checks of tasks and places, whatever the machine. All throw UserError.
namespace overlap {

/// Tasks alone and beside the tasks of their stream.
void require_tasks(const TaskList& list);
/// Blocks are inside their buffers, and those that tasks of their kind need.
void require_blocks(const PlanLines& lines, const Placement& placement);
/// Each block that a task reads is there from the start, or tasks that it waits for have written all of it.
void require_written(const Plan& plan);

}  // namespace overlap
