#pragma once

#include "models/cost_model.hpp"

namespace overlap {

/// How tasks that run together get in each other's way; the only place that knows about interference.
///
/// Sharing itself is the engine's: at any instant each task runs at its top rate, or holds on some saturated
/// resource a share that no other task exceeds (bottleneck fairness, equal weights). Here are the terms that
/// plain sharing of link, DMA and HBM bytes can't express, each as a demand with its size from the device
/// file:
/// - compute_lost_to_dma, compute_lost_to_copy_kernels: a transfer also uses compute-unit time on both of its
/// GPUs,
///   in proportion to its bytes, such that transfers in and out at the full rate of the GPU's links take the
///   stated share of it (cache and memory path; copy kernels hold their units besides, see CopyWork::cus);
/// - dma_lost_to_compute: a GEMM takes the stated share of each DMA engine of its GPU while it runs at full
/// rate. Linear in rates: thresholds and the clock under joint load are not modelled.
void add_interference(const Task& task, const Machine& machine, Cost& cost);

/// Takes out everything by which computation and communication of a GPU disturb each other: compute-unit and
/// HBM demands (kept as top rates) and held units; the terms above are not to be added. Links and DMA engines
/// stay shared.
void remove_contention(const Machine& machine, Cost& cost);

}  // namespace overlap
