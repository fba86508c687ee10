#pragma once

#include "models/cost_model.hpp"

namespace overlap {

/// How tasks that run together get in each other's way; the only place that knows about interference.
///
/// Sharing itself is the engine's: at any instant each task runs at its top rate, or holds on some saturated
/// resource a share that no other task exceeds for its weight (weighted bottleneck fairness). Here are the
/// terms that plain sharing of link, DMA and HBM bytes can't express, each with its size from the device
/// file:
/// - compute_lost_to_dma, compute_lost_to_copy_kernels: a transfer also uses compute-unit time on both of its
///   GPUs, in proportion to its bytes, such that transfers in and out at the full rate of the GPU's links
///   take the stated share of it (cache and memory path; copy kernels hold their units besides, see
///   CopyWork::cus);
/// - dma_lost_to_compute: a GEMM takes the stated share of each DMA engine of its GPU while it runs at full
///   rate;
/// - gemm_slowed_beside_…: the top rate of GEMMs is less by the stated share while there is any such copy
///   (the clock, where power is the limit);
/// - weights of task classes on a resource: ratios of their shares where it is short;
/// - residency: with GEMMs that keep their compute units, a kernel launched beside one waits for units to
///   come free before it starts. A tiled GEMM has as many units as tiles that are left to begin, so its last
///   wave leaves some, and it gives units to a kernel of higher priority as tiles end (taken to be at once).
///   Ignored: the units that a last wave leaves don't slow it when they are held. A persistent one has all
///   its tiles at once and works through them with the units that it gets (sim/engine/tile_waves.hpp); thread
///   blocks of a copy are placed on units as these come free (sim/engine/thread_blocks.hpp), which have a
///   lower rate beside a GEMM, and with what cache it leaves (Crowding); a kernel that streams memory waits
///   for as many units as feed that;
///
/// `library_runs`: whether a library's collective is among the tasks; if not, no GEMM claims units for its
/// sake.
void add_interference(const Task& task, const Machine& machine, Cost& cost, bool library_runs = true);

/// Takes out everything by which computation and communication of a GPU disturb each other: compute-unit and
/// HBM demands (kept as top rates), held and claimed units; the terms above are not to be added. Links and
/// DMA engines stay shared.
void remove_contention(const Machine& machine, Cost& cost);

}  // namespace overlap
