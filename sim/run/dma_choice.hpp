#pragma once

#include "sim/run/scenario.hpp"

namespace overlap {

/// The transfer options of a scenario whose dma_commands are `best`, with those commands that give the
/// shortest run; the first of equals in the order copy, broadcast, swap, back_to_back. Only what can do every
/// collective of the workload is tried, and with transfer 'pull' nothing that has to write.
TransferOptions fastest_commands(const Scenario& scenario);

}  // namespace overlap
