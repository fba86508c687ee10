#include "models/beside_library.hpp"

#include <algorithm>
#include <cmath>

#include "models/gemm_model.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/device_losses.hpp"

namespace overlap {
namespace {

/// Share of the resource engines[t] that a collective leaves to a GEMM. The largest slow-down of a GEMM is its inverse.
constexpr double left = 0.1;

void slow_gemm(const Task& task, const Machine& machine, Cost& cost) {
    const DeviceInterference& losses = *machine.topology.device().interference;
    const auto& shape = std::get<GemmShape>(task.work);
    const GemmParameters& parameters = machine.calibration.gemm_for(shape.dtype);
    // Beside a GEMM under a mask the collective takes units that the mask leaves.
    const bool masked = task.gemm_cus > 0 && task.gemm_cus < machine.topology.device().compute_units;
    for (int taken = 1; taken <= most_taken; ++taken) {
        const double by_units =
            masked ? 1.0 : slowed_by_lost_units(shape, parameters, machine.sustained, taken);
        const double slower = by_units / std::max(1 - taken * losses.gemm_slowed_beside_library, left);
        const double demand = left * std::clamp(slower, 1.0, 1 / left) * cost.body.si();
        cost.demands.push_back({machine.resources.engines(task.gpu, taken), demand});
    }
    if (losses.collectives_slowed_beside_gemms > 0)
        cost.holds.push_back(
            {machine.resources.channels(task.gpu), losses.collectives_slowed_beside_gemms, false});
}

/// Bus rate of one channel, relative to that of one channel when the fewest channels measured run.
double channel_speed(const CollectiveKernelWork& work, double channels, const Machine& machine,
                     Seconds body) {
    const auto& collectives = machine.topology.device().collective_library->collectives;
    const auto& by_channels = collectives.at(work.kind).bus_by_channels;
    if (by_channels.empty()) return 1;
    const auto& [fewest, rate] = *by_channels.begin();
    const double ranks = work.group.members(machine.topology.gpus()),
                 passes = work.kind == CollectiveKind::all_reduce ? 2 : 1;
    const Bytes on_bus = passes * (ranks - 1) / ranks * work.operand;
    return std::min(1.0, on_bus / body / rate * fewest / channels);
}

void slow_collective(const Task& task, const Machine& machine, Cost& cost) {
    const auto& work = std::get<CollectiveKernelWork>(task.work);
    const DeviceSpec& device = machine.topology.device();
    const double channels = work.cus > 0 ? work.cus : device.collective_library->channels;
    const double speed = channel_speed(work, channels, machine, cost.body);
    // The kernel holds its units while the ranks synchronise, so nearly all of the latency is part of its body.
    const Seconds launch = std::min(cost.launch.time, device.launch->kernel);
    cost.body = cost.body + (cost.launch.time - launch);
    cost.launch.time = launch;
    cost.holds.push_back(
        {machine.resources.engines(task.gpu, taken_of_engines(device, channels)), 1 - left, false});
    cost.demands.push_back({machine.resources.channels(task.gpu), speed * cost.body.si()});
}

}  // namespace

int taken_of_engines(const DeviceSpec& device, double channels) {
    const double units = std::floor(channels / device.interference->channels_per_engine_unit) - 1;
    return static_cast<int>(std::clamp(units, 1.0, static_cast<double>(most_taken)));
}

void add_engine_units(const Task& task, const Machine& machine, Cost& cost) {
    if (!machine.resources.counts_engines() || cost.body == Seconds()) return;
    if (task.kind() == TaskKind::gemm) slow_gemm(task, machine, cost);
    const auto* collective = std::get_if<CollectiveKernelWork>(&task.work);
    if (collective != nullptr && collective->kernel == CollectiveKernel::library)
        slow_collective(task, machine, cost);
}

}  // namespace overlap
