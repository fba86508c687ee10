#pragma once

#include "sim/transformer/study.hpp"

namespace overlap {

/// Simulates a layer of each kind and the head: every operator whole, by the fastest of DMA copies, copy kernels and
/// the vendor's library, for the list or for each pair; then with the schedules of pairs with which the list is
/// fastest (ListSearch). Layers of a kind are alike, so one of them is simulated. The search is at the clock that
/// settles with nothing cut, the result at its own. Throws UserError.
StepStudy study(const Model& model, const StepShape& step, const StudyOptions& options, Resolver& resolver);

}  // namespace overlap
