#include "models/contention.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "models/beside_library.hpp"
#include "models/streaming.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/device_losses.hpp"

namespace overlap {

namespace {

TaskClass class_of(const Task& task) {
    switch (task.kind()) {
        case TaskKind::gemm:
            return TaskClass::gemm;
        case TaskKind::copy:
            return task.by_dma() ? TaskClass::copy_dma : TaskClass::copy_cu;
        case TaskKind::collective:
            return TaskClass::collective;
        case TaskKind::local_copy:
        case TaskKind::reduce:
        case TaskKind::memory_bound:
        case TaskKind::host:
            break;
    }
    return TaskClass::stream;
}

void disturb_gemms(const CopyWork& copy, const Machine& machine, Cost& cost) {
    const DeviceSpec& device = machine.topology.device();
    const DeviceInterference& losses = *device.interference;
    const bool dma = copy.agent == Agent::dma;
    const double lost = dma ? losses.compute_lost_to_dma : losses.compute_lost_to_copy_kernels;
    const double slowed = dma ? losses.gemm_slowed_beside_dma : 0;
    const auto disturb = [&](int gpu) {
        if (slowed > 0) cost.holds.push_back({machine.resources.clock(gpu), slowed, false});
        if (lost == 0) return;
        const Seconds at_full_rate = copy.bytes / (2.0 * machine.topology.egress(gpu));
        cost.demands.push_back(
            {machine.resources.compute_units(gpu), lost * device.compute_units * at_full_rate.si()});
    };
    for_each_way(copy, [&](int src, int dst) {
        disturb(src);
        disturb(dst);
    });
}

void disturb_copies(int gpu, const Machine& machine, Cost& cost) {
    const DeviceInterference& losses = *machine.topology.device().interference;
    const ResourceTable& resources = machine.resources;
    const bool slowed = losses.gemm_slowed_beside_dma > 0;
    if (slowed) cost.demands.push_back({resources.clock(gpu), cost.body.si()});
    if (losses.dma_lost_to_compute == 0) return;
    for (int turn = 0; turn < resources.dma_engines_in_use(); ++turn) {
        const ResourceId engine = resources.dma_engine(gpu, gpu + 1 + turn);
        cost.demands.push_back(
            {engine, losses.dma_lost_to_compute * resources[engine].capacity * cost.body.si()});
    }
}

/// How GEMMs keep their compute units from kernels of this kind, and from each other.
Residency residency_beside_gemms(TaskKind kind, const DeviceSpec& device, bool library_runs) {
    const bool with_library = library_runs && (kind == TaskKind::gemm || kind == TaskKind::collective);
    return with_library && device.launch->residency == Residency::shared
               ? device.collective_library->residency
               : device.launch->residency;
}

/// A kernel with larger tiles keeps fewer stages of operands in shared memory, so
/// it leaves more first-level cache.
Bytes cache_left_by(const GemmShape& gemm, int tiles, const DeviceSpec& device) {
    const double elements = static_cast<double>(gemm.m * gemm.n * gemm.batch) / tiles;
    const DeviceCopyKernel& kernel = *device.copy_kernel;
    return elements > kernel.beside.large_tile ? kernel.beside.cache_beside_large_tiles
                                               : kernel.beside.cache_beside_gemms;
}

/// For a GEMM on another stream than `compute_stream`. It runs on the units that the tiles of the GEMM there leave
/// free. Its claim counts these units; a demand besides would slow the other GEMM's tiles.
void hold_only(Cost& cost, ResourceId units) {
    const auto of_units = [&](const Demand& demand) { return demand.resource == units; };
    cost.demands.erase(std::remove_if(cost.demands.begin(), cost.demands.end(), of_units),
                       cost.demands.end());
}

/// A copy kernel within a GPU, of few thread blocks or the runtime's.
void claim_of_copy(const LocalCopyWork& copy, int gpu, const Machine& machine, Cost& cost) {
    const DeviceSpec& device = machine.topology.device();
    const DeviceCopyKernel& kernel = *device.copy_kernel;
    const ResourceId units = machine.resources.compute_units(gpu);
    // The runtime's kernel works on every unit that is free until its end (derived: traces/h100_1/runtime_copy.tar.xz).
    const int blocks = copy.by_runtime ? static_cast<int>(device.compute_units) : copy.cus;
    hold_only(cost, units);
    cost.claim = {.resource = units,
                  .most = blocks,
                  .parts = Blocks{.count = blocks,
                                  .together = copy.by_runtime ? 1 : kernel.blocks_per_unit,
                                  .unit = streamed(copy, device, 1, OperandsIn::cache).body,
                                  .beside_tiles = kernel.beside.rate_beside_gemms,
                                  .in_flight = copy.by_runtime ? Bytes() : kernel.local_loads,
                                  .to_the_end = copy.by_runtime,
                                  .paired = kernel.beside.paired_blocks}};
}

/// A kernel that holds units needs exactly these; one that shares units starts with any number. A tiled GEMM
/// takes no more units than it has tiles. A persistent GEMM works through its tiles on the units it gets.
/// Thread blocks of a copy are placed as units come free.
void claim_compute_units(const Task& task, const Machine& machine, bool library_runs, Cost& cost) {
    const Residency residency = residency_beside_gemms(task.kind(), machine.topology.device(), library_runs);
    const ResourceId units = machine.resources.compute_units(task.gpu);
    if (residency == Residency::shared) return cost.claim.reset();
    if (const auto* copy = std::get_if<LocalCopyWork>(&task.work); copy != nullptr && !copy->is_own_kernel())
        return claim_of_copy(*copy, task.gpu, machine, cost);
    if (claimed<Blocks>(cost) != nullptr) {
        const auto of_units = [&](const Hold& hold) { return hold.resource == units; };
        cost.holds.erase(std::remove_if(cost.holds.begin(), cost.holds.end(), of_units), cost.holds.end());
        return;
    }
    std::optional<Claim> of_tiles = std::exchange(cost.claim, std::nullopt);
    const bool persistent = residency == Residency::persistent;
    if (of_tiles && persistent) {
        Tiles& tiles = std::get<Tiles>(of_tiles->parts);
        if (const auto* gemm = std::get_if<GemmShape>(&task.work))
            tiles.cache_left = cache_left_by(*gemm, tiles.count, machine.topology.device());
        if (!task.persistent) tiles.cluster = machine.topology.device().copy_kernel->beside.gemm_cluster;
        cost.claim = of_tiles;
        if (task.stream != compute_stream) hold_only(cost, units);
        return;
    }
    for (const Hold& hold : cost.holds)
        if (hold.resource == units)
            cost.claim = {units, static_cast<int>(hold.units), static_cast<int>(hold.units), false};
    for (const Demand& demand : cost.demands) {
        if (demand.resource != units || cost.claim) continue;
        const int all = machine.resources[units].units;
        const int allowed = task.gemm_cus > 0 ? std::min(task.gemm_cus, all) : all;
        cost.claim = {units, 1, of_tiles ? of_tiles->most : allowed, !persistent};
        if (of_tiles) {
            const Tiles& tiles = std::get<Tiles>(of_tiles->parts);
            if (tiles.tail) cost.claim->parts = *tiles.tail;
            const double waves = machine.topology.device().interference->late_ranks_waves;
            // A mask leaves units on which no rank has tiles.
            if (!persistent && allowed == all)
                cost.claim->yields_after = std::min(waves / tiles.waves, 1.0) * cost.body;
        }
        const double needed = cost.body > Seconds() ? std::ceil(demand.amount / cost.body.si()) : 1;
        // A framework's kernel has many short thread blocks, which start on any free unit beside a collective
        // (traces/h100_2/scatter). A kernel made for a schedule has as many thread blocks as fit on its units at once.
        const bool of_framework = task.kind() == TaskKind::memory_bound;
        if (persistent && !of_framework) cost.claim->least = std::clamp(static_cast<int>(needed), 1, allowed);
    }
}

}  // namespace

void add_interference(const Task& task, const Machine& machine, Cost& cost, bool library_runs) {
    const DeviceSpec& device = machine.topology.device();
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy != nullptr && copy->stored) return;  // part of the kernel that stores
    if (!task.by_dma()) claim_compute_units(task, machine, library_runs, cost);
    if (copy != nullptr) disturb_gemms(*copy, machine, cost);
    if (task.kind() == TaskKind::gemm) disturb_copies(task.gpu, machine, cost);
    if (library_runs) add_engine_units(task, machine, cost);
    if (device.interference->weights.empty()) return;
    for (Demand& demand : cost.demands) {
        const auto kind = static_cast<std::size_t>(machine.resources[demand.resource].kind);
        const auto weights = device.interference->weights.find(resource_kind_names[kind]);
        if (weights != device.interference->weights.end())
            demand.weight = weights->second[static_cast<std::size_t>(class_of(task))];
    }
}

void remove_contention(const Task& task, const Machine& machine, Cost& cost) {
    cost.body = isolated_body(cost, machine.resources);
    // Without contention a kernel beside a pull must not make its completion visible earlier.
    if (std::holds_alternative<Polling>(cost.end)) cost.end = Completion();
    // GEMMs on several streams of a GPU still share its units with each other.
    const bool multiplies = task.kind() == TaskKind::gemm;
    const auto shared_by_both = [&](const Demand& demand) {
        const ResourceKind kind = machine.resources[demand.resource].kind;
        if (kind == ResourceKind::compute_units && multiplies) return false;
        return kind == ResourceKind::compute_units || kind == ResourceKind::hbm ||
               kind == ResourceKind::clock || kind == ResourceKind::engines || kind == ResourceKind::channels;
    };
    if (cost.claim && machine.resources[cost.claim->resource].kind == ResourceKind::compute_units)
        cost.claim.reset();
    cost.demands.erase(std::remove_if(cost.demands.begin(), cost.demands.end(), shared_by_both),
                       cost.demands.end());
    cost.holds.clear();
}

}  // namespace overlap
