#pragma once

#include "sim/core/input_keys.hpp"
#include "sim/core/task_graph.hpp"

// The keys of one task of a plan, but for those that depend on the plan around it: gpu, stream, name, after, from, to.
namespace overlap {

/// What tasks of every kind have.
InputKeys<Task> common_task_keys();
/// What tasks of one kind have. Not of calls of hosts, which no plan has.
InputKeys<Task> keys_of_kind(TaskKind kind);

/// Keys of ranks: a number, or "+1" for the next rank, counted from that of the task.
inline const std::array<std::string, 4> rank_keys{"src", "dst", "second_dst", "shard"};

/// Reads the kind and all keys of `from` that are in the tables. Throws UserError.
Task read_task(ConfigObject& from);
/// A task with kind and keys; defaults are left out.
Json written_task(const Task& task);

}  // namespace overlap
