#pragma once

#include "models/cost_model.hpp"

namespace overlap {

/// GEMMs and a library's collective on the same GPU, where the device file has
/// `channels_per_engine_unit` (models/contention.hpp adds this to every task).
///
/// A collective of c channels takes t = ⌊c / channels_per_engine_unit⌋ − 1 compute units of each shader engine,
/// from 1 to most_taken, also while its ranks wait for each other (the latency). Hardware deals the tiles of a GEMM
/// to the engines without regard to units in use, so the GEMM takes as many waves as the units left in an engine need
/// (slowed_by_lost_units), for the share of its body that the collective runs. It loses t times
/// gemm_slowed_beside_library in addition.
///
/// Beside a GEMM each channel runs at the share 1 - collectives_slowed_beside_gemms of the rate of a channel that is
/// alone or one of few. If the links limit a collective of many channels, the collective slows down less.
///
/// The resources engines[t] represent this; they limit each user separately. A collective holds 0.9 of engines[t]. A GEMM
/// demands 0.1 times its slow-down with t units taken.
/// Ignored: several collectives at once take no more than the largest of them.
void add_engine_units(const Task& task, const Machine& machine, Cost& cost);

/// Compute units of each shader engine that a collective of `channels` takes.
int taken_of_engines(const DeviceSpec& device, double channels);

}  // namespace overlap
