#pragma once

#include "sim/run/scenario.hpp"

namespace overlap {

/// The scenario's transfer options with the DMA commands of the shortest run, for a scenario with
/// dma_commands `best`. On a tie the first of copy, one_stream, broadcast, swap, back_to_back. Only commands that can do
/// every collective of the workload are tried; with transfer 'pull' none that must write.
TransferOptions fastest_commands(const Scenario& scenario);

}  // namespace overlap
