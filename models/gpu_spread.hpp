#pragma once

namespace overlap {

/// How far the largest of `count` draws of a standard normal distribution lies above 0 on average: 0 of one,
/// 1/sqrt(pi) of two, 1.0294 of four. count >= 1.
double expected_largest(int count);

/// Time of a GEMM on the slowest of `gpus`, over its mean, where times of GPUs of one kind have the standard
/// deviation `spread`, a share of the mean. Chips differ in the clock that their power limit allows, by the
/// same share in every GEMM. It stands for all GPUs of a machine: which one is slow is not known beforehand,
/// and schedules wait for it.
double slowest_of(int gpus, double spread);

}  // namespace overlap
