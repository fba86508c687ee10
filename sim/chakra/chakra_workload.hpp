#pragma once

#include <string>
#include <vector>

#include "sim/core/json.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// A Chakra execution trace (mlcommons/chakra; inputs of ASTRA-sim) as a workload.
struct ChakraWorkload {
    Json workload;                   ///< a workload file
    std::vector<std::string> notes;  ///< what was ignored or assumed, a line each
};

/// Whether `name` is NAME, NAME.et or NAME.<rank>.et of trace files that are there.
bool is_chakra_trace(const std::string& name);
/// The trace that `name` names here, or in the folder of the file that names it (`beside`: its path there); empty if
/// none.
std::string chakra_trace(const std::string& name, const std::string& beside);

/// Reads all ranks of a trace. Nodes of all ranks that are alike become one operator of the list; where ranks
/// differ, every rank's nodes are operators of their own. Numbers mean what they mean to ASTRA-sim: `comm_size` of an
/// all-gather is one rank's shard, a COMP_NODE moves `tensor_size` bytes and does `num_ops` FLOPs, or takes its
/// recorded time if it has neither. A message that arrives before its receive is kept.
/// Throws UserError, one line with file and node, for what is damaged or can't be expressed.
ChakraWorkload read_chakra(const std::string& name);

/// The contents of the files of all ranks for a workload. An attribute `overlap_operator` holds what Chakra has no
/// field for, so that read_chakra returns an equal list; a pair comes back as a list of two operators.
std::vector<std::string> to_chakra(const Workload& workload, int ranks);

}  // namespace overlap
