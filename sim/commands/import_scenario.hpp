#pragma once

#include <string>

#include "sim/core/timeline.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// The shipped topology of `gpus` GPUs of a device that a profiler calls "NVIDIA H200"; empty if there is none.
std::string topology_of(const std::string& device, int gpus, const ConfigFolder& folder);

/// The spans with the names of the scenario's tasks, so that sim compare compares them one by one: on each GPU the
/// first GEMM is the first one predicted, and so on, for each kind of task of which as many ran as were predicted.
/// `notes`: a line for each kind whose number differs.
Timeline with_names_of(const Scenario& scenario, const Timeline& recorded, std::string& notes);

}  // namespace overlap
