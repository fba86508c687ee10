#pragma once

#include "models/cost_model.hpp"

namespace overlap {

/// Interference: how tasks that run at the same time slow each other. No other file models it.
///
/// The engine does plain sharing: each task runs at its top rate, or no other task gets more of a saturated
/// resource for its weight (weighted bottleneck fairness). This file adds what sharing of link, DMA and HBM
/// bytes can't express. The sizes come from the device file:
/// - compute_lost_to_dma, compute_lost_to_copy_kernels: a transfer uses compute-unit time on both of
///   its GPUs, in proportion to its bytes. Transfers in and out at the full rate of a GPU's links take
///   this share of its compute units (cache and memory path). Copy kernels hold compute units in
///   addition, see CopyWork::cus.
/// - dma_lost_to_compute: a GEMM at full rate takes this share of each DMA engine of its GPU.
/// - gemm_slowed_beside_…: GEMMs lose this share of their top rate while any such copy runs (the clock falls
///   where power is the limit).
/// - channels_per_engine_unit and two more: GEMMs beside a library's collective, see beside_library.hpp.
/// - weights of task classes on a resource: the ratio of their shares when the resource is saturated.
/// - residency: beside a GEMM that keeps its compute units, a new kernel waits for free units before it
///   starts. A tiled GEMM starts on as many units as it has tiles, so its last wave frees some. As tiles end, a kernel
///   of higher priority gets units, on all simulated GPUs at the same time. A collective that gets units so waits
///   late_ranks_waves waves for the slowest rank, unless a mask bars the GEMM from some units.
///   Ignored: a GEMM is not slowed when its last wave's free units are held. A persistent GEMM starts with all
///   its tiles and works through them on the units it gets (sim/engine/tile_waves.hpp). Thread blocks of a copy
///   are placed on units as these come free (sim/engine/thread_blocks.hpp); beside a GEMM they run at a lower
///   rate, limited by the cache that the GEMM leaves (Blocks). A kernel that streams memory waits for as many
///   units as it needs to saturate memory.
///
/// `library_runs`: whether the graph has a library collective. Without one, GEMMs claim no
/// units because of the library.
void add_interference(const Task& task, const Machine& machine, Cost& cost, bool library_runs = true);

/// Switches off all interference between computation and communication of one GPU: compute-unit and HBM
/// demands become top rates, held and claimed units are dropped. Call it instead of add_interference. Links
/// and DMA engines stay shared, and so do the compute units among the GEMMs of a GPU, which may be on several streams.
void remove_contention(const Task& task, const Machine& machine, Cost& cost);

}  // namespace overlap
