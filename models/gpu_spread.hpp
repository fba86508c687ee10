#pragma once

namespace overlap {

/// Expected maximum of `count` draws from a standard normal distribution: 0 for one draw, 1/sqrt(pi) for two,
/// 1.0294 for four. count >= 1.
double expected_largest(int count);

/// GEMM time on the slowest of `gpus` GPUs over the mean GEMM time, given the standard deviation `spread` of
/// one GPU's time (a fraction of the mean). Chips of one kind differ in the clock that their power limit
/// allows, by the same factor in every GEMM. All GPUs of a machine use this factor: which GPU is slow is not
/// known beforehand, and schedules wait for the slowest one.
double slowest_of(int gpus, double spread);

}  // namespace overlap
