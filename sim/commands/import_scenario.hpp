#pragma once

#include <string>

#include "sim/core/timeline.hpp"
#include "sim/importers/recognise.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// The shipped topology of `gpus` GPUs of a device that a profiler calls "NVIDIA H200"; empty if there is none.
std::string topology_of(const std::string& device, int gpus, const ConfigFolder& folder);

/// The GEMM with the hint's operand, as near to a square as whole rows for each part allow, whose parts take the
/// hint's time on a cool GPU of `machine`; its free side is a multiple of 128. None if no such GEMM takes that time
/// to a tenth.
std::optional<GemmShape> guessed_shape(const ShapeHint& hint, const Machine& machine);

/// The spans with the names of the scenario's tasks, so that sim compare compares them one by one: on each GPU the
/// first GEMM is the first one predicted, and so on, for each kind of task of which as many ran as were predicted.
/// `notes`: a line for each kind whose number differs.
Timeline with_names_of(const Scenario& scenario, const Timeline& recorded, std::string& notes);

}  // namespace overlap
