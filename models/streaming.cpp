#include "models/streaming.hpp"

#include <algorithm>
#include <cmath>

#include "models/cost_model.hpp"
#include "models/settled_clock.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_launch.hpp"

namespace overlap {
namespace {

/// Bytes read and written, and with extra bytes that stand for the time lost to short runs.
struct Traffic {
    Bytes moved, paid;
};

/// Sums and pure reads.
bool loads_first(const Work& work) {
    const auto* op = std::get_if<MemoryBoundWork>(&work);
    return std::holds_alternative<ReduceWork>(work) ||
           (op != nullptr && op->written == Bytes() && op->read > Bytes());
}

Traffic traffic(const Work& work, const DeviceSpec& device) {
    if (const auto* copy = std::get_if<LocalCopyWork>(&work)) {
        const Bytes run = device.dma->phases.strided_run;
        const double stretch = copy->run < copy->bytes ? (copy->run + run) / copy->run : 1.0;
        return {2.0 * copy->bytes, 2.0 * copy->bytes * stretch};
    }
    if (const auto* sum = std::get_if<ReduceWork>(&work)) {
        const Bytes moved = (sum->parts + 1.0) * sum->bytes;
        return {moved, moved};
    }
    const auto& op = std::get<MemoryBoundWork>(work);
    return {op.read + op.written, op.read + op.written};
}

/// Fastest rate of a type's arithmetic: that of the calibrated GEMMs' main loop, else the data sheet's.
FlopsPerSecond arithmetic_rate(DType dtype, const Machine& machine) {
    const auto& fitted = machine.calibration.gemm;
    if (const auto found = fitted.find(dtype); found != fitted.end()) return found->second.peak_rate;
    const auto& peak = machine.topology.device().peak;
    if (const auto found = peak.find(dtype); found != peak.end()) return found->second;
    return machine.calibration.gemm_for(dtype).peak_rate;  // throws
}

/// Roofline: a kernel whose arithmetic takes longer than its memory lasts as long and has all compute units.
void limit_by_flops(const Work& work, const Machine& machine, Streamed& kernel) {
    const auto* op = std::get_if<MemoryBoundWork>(&work);
    if (op == nullptr || op->flops == Flops()) return;
    const Seconds computing = op->flops / arithmetic_rate(op->dtype, machine);
    if (computing <= kernel.body) return;
    kernel.body = computing;
    kernel.units = machine.topology.device().compute_units;
}

/// A kernel of one small thread block finds room beside a GEMM's: in traces/h200_2/pytorch barriers don't wait for
/// GEMMs that hold all units (GEMM 65536x2048x1024, reduce-scatter by async-TP: 850 us measured, 1,025 if they did).
constexpr Bytes of_one_block{4096};

/// How much longer a framework's sum takes at the clock of a steady state. Half of its time is taken to wait for
/// memory, whose clock stays. Measured on H100: a sum that takes 264 us at full clock (traces/h100_2/power) takes 300
/// at 0.82 of the clock; others take 412 instead of 351 at 0.735, and 59 instead of 49 at 0.70
/// (traces/h100_2/scatter).
double slowed_by_clock(const Machine& machine) {
    return (1 + 1 / clock_of(machine)) / 2;
}

// Packs, scatters, reductions and element-wise operators. They share compute
// units with a GEMM like any kernel.
class Streaming final : public CostModel {
public:
    bool handles(const Task& task) const override {
        const TaskKind kind = task.kind();
        return kind == TaskKind::local_copy || kind == TaskKind::reduce || kind == TaskKind::memory_bound;
    }

    Cost cost(const Task& task, const Machine& machine) const override {
        const DeviceSpec& device = machine.topology.device();
        if (const auto* op = std::get_if<MemoryBoundWork>(&task.work); op != nullptr && op->time > Seconds())
            return op->in_this_run ? as_recorded(*op, device) : recorded(*op, task.gpu, machine);
        Streamed kernel = streamed(task.work, device);
        limit_by_flops(task.work, machine, kernel);
        Cost cost = kernel_cost(*device.launch);
        if (task.continues)
            cost.launch = {};
        else
            cost.setup = start_of(task.work, device);
        cost.body = kernel.body;
        const BytesPerSecond framework = device.stream->framework_sum;
        if (const auto* sum = std::get_if<ReduceWork>(&task.work);
            sum != nullptr && sum->by_framework && framework > BytesPerSecond())
            cost.body = std::max(cost.body, slowed_by_clock(machine) * (sum->bytes / framework));
        if (const auto* sum = std::get_if<ReduceWork>(&task.work);
            sum != nullptr && !sum->by_framework && device.stream->sum > BytesPerSecond())
            cost.claim = claim_of_sum(*sum, task.gpu, machine);
        else if (kernel.moved > of_one_block)
            cost.demands.push_back(
                {machine.resources.compute_units(task.gpu), kernel.units * cost.body.si()});
        cost.demands.push_back(
            {machine.resources.hbm(task.gpu), std::min(kernel.moved, device.hbm * cost.body).si()});
        if (const auto* copy = std::get_if<LocalCopyWork>(&task.work);
            copy != nullptr && !copy->is_own_kernel())
            cost.body = streamed(*copy, device, copy->by_runtime ? device.compute_units : copy->cus,
                                 OperandsIn::cache)
                            .body;
        return cost;
    }

private:
    /// Thread blocks of a schedule's sum: two for each unit of the GPU, on the units that GEMMs leave.
    static Claim claim_of_sum(const ReduceWork& sum, int gpu, const Machine& machine) {
        const DeviceSpec& device = machine.topology.device();
        const DeviceStream& stream = *device.stream;
        const double parts = sum.parts;
        const int units = static_cast<int>(device.compute_units), blocks = 2 * units;
        const Seconds work = (parts + 1) * sum.bytes / stream.sum +
                             blocks * (stream.sum_block + parts * stream.sum_block_part);
        return {.resource = machine.resources.compute_units(gpu),
                .most = units,
                .parts = Blocks{.count = blocks, .together = 2, .unit = work, .streaming = true}};
    }

    /// What ran beside it is in its duration: it takes nothing that others would miss.
    static Cost as_recorded(const MemoryBoundWork& op, const DeviceSpec& device) {
        Cost cost = op.gap ? Cost{} : kernel_cost(*device.launch);
        cost.setup = op.gap.value_or(Seconds());
        cost.body = op.time;
        return cost;
    }

    /// A kernel of a recorded duration is taken to have all compute units, which no recording says, so that it takes
    /// longer at a lower clock, and to move the bytes that are known.
    static Cost recorded(const MemoryBoundWork& op, int gpu, const Machine& machine) {
        const DeviceSpec& device = machine.topology.device();
        Cost cost = kernel_cost(*device.launch);
        cost.body = op.time / clock_of(machine);
        cost.demands.push_back({machine.resources.compute_units(gpu), device.compute_units * cost.body.si()});
        if (const Bytes moved = op.read + op.written; moved > Bytes())
            cost.demands.push_back(
                {machine.resources.hbm(gpu), std::min(moved, device.hbm * cost.body).si()});
        return cost;
    }
};

}  // namespace

Streamed streamed(const Work& work, const DeviceSpec& device, double units, OperandsIn operands) {
    const Traffic bytes = traffic(work, device);
    const BytesPerSecond unit = device.stream->cu;
    const bool near = operands == OperandsIn::cache || std::holds_alternative<MemoryBoundWork>(work);
    const bool cached =
        near && device.stream->cache > BytesPerSecond() && bytes.moved <= device.last_level_cache;
    const BytesPerSecond memory = cached ? device.stream->cache : device.hbm;
    if (units == 0) {
        units = std::min(device.compute_units, memory / unit);
        return {bytes.moved, units, bytes.paid / std::min(units * unit, memory)};
    }
    constexpr double corner = 6;
    const BytesPerSecond drawn = units * unit;
    return {bytes.moved, units,
            bytes.paid / drawn * std::pow(1 + std::pow(drawn / memory, corner), 1 / corner)};
}

Seconds start_of(const Work& work, const DeviceSpec& device) {
    Seconds start = device.stream->start;
    if (loads_first(work)) start += device.stream->load_start;
    return start;
}

std::unique_ptr<CostModel> make_streaming() {
    return std::make_unique<Streaming>();
}

}  // namespace overlap
