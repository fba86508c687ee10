#include "models/streaming.hpp"

#include <algorithm>
#include <cmath>

#include "models/cost_model.hpp"
#include "models/settled_clock.hpp"

namespace overlap {
namespace {

/// Bytes read and written, extra bytes that stand for the time lost to short runs, and the rate of one unit.
struct Traffic {
    Bytes read, written, paid;
    BytesPerSecond unit;
    Bytes moved() const { return read + written; }
};

constexpr double share_for_loads = 0.5;  // fraction of the cache; see streamed()
constexpr double corner = 6;             // see streamed()

BytesPerSecond unit_rate(Bytes read, Bytes written, const DeviceSpec::Stream& stream) {
    if (stream.read == BytesPerSecond()) return stream.cu;
    const double reading = (read / stream.read).si(), writing = (written / stream.write).si();
    const double p = stream.overlap;
    return (read + written) / Seconds(std::pow(std::pow(reading, p) + std::pow(writing, p), 1 / p));
}

/// Sums and pure reads.
bool loads_first(const Work& work) {
    const auto* op = std::get_if<MemoryBoundWork>(&work);
    return std::holds_alternative<ReduceWork>(work) ||
           (op != nullptr && op->written == Bytes() && op->read > Bytes());
}

/// Whether each unit waits for its loads, because a thread has few of them in flight.
bool waits_for_loads(const Work& work, const DeviceSpec& device, KernelOf kernel) {
    const auto* sum = std::get_if<ReduceWork>(&work);
    const bool few = sum == nullptr || sum->by_framework || kernel == KernelOf::benchmark;
    return few && loads_first(work) && device.stream.reduce > BytesPerSecond();
}

Traffic traffic(const Work& work, const DeviceSpec& device, KernelOf kernel) {
    const DeviceSpec::Stream& stream = device.stream;
    if (const auto* copy = std::get_if<LocalCopyWork>(&work)) {
        const double stretch = copy->run < copy->bytes ? (copy->run + stream.strided_run) / copy->run : 1.0;
        return {copy->bytes, copy->bytes, 2.0 * copy->bytes * stretch,
                unit_rate(copy->bytes, copy->bytes, stream)};
    }
    if (const auto* sum = std::get_if<ReduceWork>(&work)) {
        const double parts = sum->parts;
        const bool waits = waits_for_loads(work, device, kernel);
        return {
            parts * sum->bytes, sum->bytes, (parts + 1) * sum->bytes,
            waits ? (parts + 1) / parts * stream.reduce : unit_rate(parts * sum->bytes, sum->bytes, stream)};
    }
    const auto& stretch = std::get<MemoryBoundWork>(work);
    return {stretch.read, stretch.written, stretch.read + stretch.written,
            unit_rate(stretch.read, stretch.written, stream)};
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
        Cost cost = kernel_cost(device.launch);
        if (task.continues)
            cost.launch = {};
        else
            cost.setup = start_of(task.work, device);
        cost.body = kernel.body;
        const BytesPerSecond framework = device.stream.framework_sum;
        if (const auto* sum = std::get_if<ReduceWork>(&task.work);
            sum != nullptr && sum->by_framework && framework > BytesPerSecond())
            cost.body = std::max(cost.body, slowed_by_clock(machine) * (sum->bytes / framework));
        if (const auto* sum = std::get_if<ReduceWork>(&task.work);
            sum != nullptr && !sum->by_framework && device.stream.sum > BytesPerSecond())
            cost.claim = claim_of_sum(*sum, task.gpu, machine);
        else if (kernel.moved > of_one_block)
            cost.demands.push_back(
                {machine.resources.compute_units(task.gpu), kernel.units * cost.body.si()});
        cost.demands.push_back(
            {machine.resources.hbm(task.gpu), std::min(kernel.moved, device.hbm * cost.body).si()});
        if (const auto* copy = std::get_if<LocalCopyWork>(&task.work);
            copy != nullptr && !copy->is_own_kernel())
            cost.body = streamed(*copy, device, copy->by_runtime ? device.compute_units : copy->cus,
                                 KernelOf::benchmark)
                            .body;
        return cost;
    }

private:
    /// Thread blocks of a schedule's sum: two for each unit of the GPU, on the units that GEMMs leave.
    static Claim claim_of_sum(const ReduceWork& sum, int gpu, const Machine& machine) {
        const DeviceSpec& device = machine.topology.device();
        const DeviceSpec::Stream& stream = device.stream;
        const double parts = sum.parts;
        const int units = static_cast<int>(device.compute_units), blocks = 2 * units;
        const Seconds work = (parts + 1) * sum.bytes / stream.sum +
                             blocks * (stream.sum_block + parts * stream.sum_block_part);
        return {.resource = machine.resources.compute_units(gpu),
                .most = units,
                .parts = Blocks{.count = blocks,
                                .together = 2,
                                .unit = work,
                                .beside_tiles = stream.sum_beside_gemms,
                                .streaming = true}};
    }

    /// What ran beside it is in its duration: it takes nothing that others would miss.
    static Cost as_recorded(const MemoryBoundWork& op, const DeviceSpec& device) {
        Cost cost = op.gap ? Cost{} : kernel_cost(device.launch);
        cost.setup = op.gap.value_or(Seconds());
        cost.body = op.time;
        return cost;
    }

    /// A kernel of a recorded duration is taken to have all compute units, which no recording says, so that it takes
    /// longer at a lower clock, and to move the bytes that are known.
    static Cost recorded(const MemoryBoundWork& op, int gpu, const Machine& machine) {
        const DeviceSpec& device = machine.topology.device();
        Cost cost = kernel_cost(device.launch);
        cost.body = op.time / clock_of(machine);
        cost.demands.push_back({machine.resources.compute_units(gpu), device.compute_units * cost.body.si()});
        if (const Bytes moved = op.read + op.written; moved > Bytes())
            cost.demands.push_back(
                {machine.resources.hbm(gpu), std::min(moved, device.hbm * cost.body).si()});
        return cost;
    }
};

}  // namespace

Streamed streamed(const Work& work, const DeviceSpec& device, double units, KernelOf kernel) {
    Traffic bytes = traffic(work, device, kernel);
    const bool loads = device.stream.cached_loads > 0 && loads_first(work);
    const Bytes fits = loads ? device.last_level_cache * share_for_loads : device.last_level_cache;
    const bool near = kernel == KernelOf::benchmark || std::holds_alternative<MemoryBoundWork>(work);
    const bool cached = near && device.stream.cache > BytesPerSecond() && bytes.moved() <= fits;
    const BytesPerSecond memory = cached ? device.stream.cache : device.hbm;
    if (loads && cached) bytes.unit = device.stream.cached_loads * bytes.unit;
    const bool everywhere = loads_first(work) && device.stream.reduce > BytesPerSecond(), given = units > 0;
    if (!given)
        units = std::min(device.compute_units, everywhere ? device.compute_units : memory / bytes.unit);
    const BytesPerSecond drawn = units * bytes.unit;
    const double filled = drawn / memory;
    const BytesPerSecond rate = waits_for_loads(work, device, kernel) ? drawn / std::hypot(1, filled)
                                : given && std::holds_alternative<LocalCopyWork>(work)
                                    ? drawn / std::pow(1 + std::pow(filled, corner), 1 / corner)
                                    : std::min(drawn, memory);
    return {bytes.moved(), units, bytes.paid / rate};
}

Seconds start_of(const Work& work, const DeviceSpec& device) {
    const auto* copy = std::get_if<LocalCopyWork>(&work);
    Seconds start = device.stream.start;
    if (copy != nullptr && copy->run < copy->bytes) start += device.stream.strided_start;
    if (loads_first(work)) start += device.stream.load_start;
    return start;
}

std::unique_ptr<CostModel> make_streaming() {
    return std::make_unique<Streaming>();
}

}  // namespace overlap
