// Executes a plan on the GPUs and times it by events.

#include "models/calibration/hip/replay/executor.hpp"

#include <algorithm>
#include <set>

#include "models/calibration/hip/copies.hpp"
#include "models/calibration/hip/replay/moves.hpp"

namespace overlap::hip {
namespace {

constexpr std::size_t element = 2;  // bf16

/// A GPU's streams, in the order in which `open_streams` launches on them.
constexpr int compute_stream = 0, local_stream = 1, first_transfer_stream = 2;

double microseconds_between(hipEvent_t from, hipEvent_t to) {
    float milliseconds = 0;
    check(hipEventElapsedTime(&milliseconds, from, to));
    return milliseconds * 1e3;
}

}  // namespace

std::size_t bytes_of(const PlanBuffer& buffer) {
    return static_cast<std::size_t>(buffer.rows * buffer.columns) * element;
}

void open_streams(Machine& machine) {
    for (int gpu = 0; gpu < machine.gpus(); ++gpu) {
        int* flags = machine.flags(gpu);
        for (const bool high_priority : {false, true})
            for (int index = 0; index < first_transfer_stream + machine.gpus(); ++index) {
                check(hipMemsetAsync(flags, 0, sizeof *flags, machine.stream(gpu, index, high_priority)));
                check(hipDeviceSynchronize());
            }
    }
}

Gemm& GemmPlans::get(int gpu, const GemmShape& shape) {
    check(hipSetDevice(gpu));
    void*& workspace = workspaces_[gpu];
    if (!workspace) check(hipMalloc(&workspace, gemm_workspace_bytes));
    auto& gemm = gemms_[{gpu, shape.m, shape.n, shape.k, shape.accumulate, shape.units, shape.a_pitch,
                         shape.b_pitch, shape.c_pitch}];
    if (!gemm) gemm = make_gemm(shape, workspace);
    return *gemm;
}

Executor::Executor(Machine& machine, GemmPlans& gemms, const PlacedPlan& placed)
    : machine_(machine), plan_(*placed.plan), memory_(placed.memory), marks_(plan_.tasks.size(), nullptr) {
    std::map<int, std::size_t> next_event, next_mark;
    std::map<std::pair<int, bool>, int> transfers;
    const auto index_of = [&](const PlanStream& stream) {
        if (stream.name == "compute") return compute_stream;
        if (stream.name == "local") return local_stream;
        return first_transfer_stream + transfers[{stream.gpu, stream.high_priority}]++;
    };
    const auto event = [&](int gpu) { return machine.event(gpu, next_event[gpu]++); };
    for (const PlanStream& stream : plan_.streams) {
        streams_.push_back(machine.stream(stream.gpu, index_of(stream), stream.high_priority));
        if (!releases_.contains(stream.gpu)) releases_[stream.gpu] = event(stream.gpu);
        ends_.push_back(event(stream.gpu));
    }
    begins_late_.assign(plan_.streams.size(), false);
    std::set<std::size_t> begun;
    for (const PlanTask& task : plan_.tasks)
        if (begun.insert(task.stream).second) begins_late_[task.stream] = task.kind == PlanKind::wait;
    for (const PlanTask& task : plan_.tasks) {
        Step step{task.stream, {}, operation(task, gemms)};
        std::map<std::size_t, std::size_t> last;  // by stream: streams are in order
        for (const std::size_t before : task.after)
            if (const std::size_t stream = plan_.tasks[before].stream; stream != task.stream)
                last[stream] = std::max(last[stream], before);
        for (const auto& [stream, before] : last) {
            step.waits.push_back(before);
            if (!marks_[before]) {
                const int gpu = plan_.tasks[before].gpu;
                marks_[before] = machine.mark(gpu, next_mark[gpu]++);
            }
        }
        steps_.push_back(std::move(step));
        around_.emplace_back(event(task.gpu), event(task.gpu));
    }
}

Operation Executor::operation(const PlanTask& task, GemmPlans& gemms) const {
    const auto pitch = [&](const PlanBlock& block) { return plan_.buffers[block.buffer].columns; };
    const auto address = [&](const PlanBlock& block) {
        return static_cast<char*>(memory_[block.buffer]) +
               (block.row * pitch(block) + block.column) * static_cast<std::int64_t>(element);
    };
    const auto rows = [&](const PlanBlock& block) {
        return Rows{static_cast<std::size_t>(block.rows), static_cast<std::size_t>(block.columns) * element,
                    static_cast<std::size_t>(pitch(block)) * element};
    };
    const auto places = [&](const std::vector<PlanBlock>& blocks) {
        std::vector<Place> result;
        for (const PlanBlock& block : blocks) result.push_back({address(block), rows(block)});
        return result;
    };
    const int units = machine_.compute_units(task.gpu);
    switch (task.kind) {
        case PlanKind::gemm: {
            const PlanBlock &a = task.from[0], &b = task.from[1], &c = task.to[0];
            GemmShape shape{c.rows, c.columns, a.columns, DType::bf16, task.accumulate};
            shape.a_pitch = pitch(a);
            shape.b_pitch = pitch(b);
            shape.c_pitch = pitch(c);
            shape.units = task.units < units ? task.units : 0;
            Gemm* gemm = &gemms.get(task.gpu, shape);
            return [gemm, a = address(a), b = address(b), c = address(c)](hipStream_t stream) {
                gemm->run(a, b, c, stream);
            };
        }
        case PlanKind::copy: {
            const PlanBlock &from = task.from[0], &to = task.to[0];
            return copy_operation({address(from), plan_.buffers[from.buffer].gpu, rows(from), address(to),
                                   plan_.buffers[to.buffer].gpu, rows(to)},
                                  {task.dma, task.blocks});
        }
        case PlanKind::wait:
            return [us = task.wait_us](hipStream_t stream) { gate().hold(stream, us); };
        case PlanKind::local_copy:
            if (task.dma || task.blocks)
                return copy_operation({address(task.from[0]), task.gpu, rows(task.from[0]),
                                       address(task.to[0]), task.gpu, rows(task.to[0])},
                                      {task.dma, task.blocks});
            return move_operation(places(task.from), places(task.to), units);
        case PlanKind::reduce:
            return sum_operation(places(task.from), places(task.to)[0], units);
    }
    throw std::logic_error("no such kind of task");
}

void Executor::enqueue(bool gated, Times times) {
    int current = -1;
    const auto on = [&](int gpu) {
        if (gpu != current) check(hipSetDevice(gpu));
        current = gpu;
    };
    std::set<int> held;
    for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
        const int gpu = plan_.streams[stream].gpu;
        on(gpu);
        if (begins_late_[stream]) continue;  // its wait is a gate of its own
        if (!held.insert(gpu).second) {
            check(hipStreamWaitEvent(streams_[stream], releases_.at(gpu), 0));
            continue;
        }
        if (gated) gate().hold(streams_[stream]);
        check(hipEventRecord(releases_.at(gpu), streams_[stream]));
    }
    for (std::size_t id = 0; id < steps_.size(); ++id) {
        const Step& step = steps_[id];
        const hipStream_t stream = streams_[step.stream];
        on(plan_.tasks[id].gpu);
        for (const std::size_t before : step.waits) check(hipStreamWaitEvent(stream, marks_[before], 0));
        if (times == Times::around) check(hipEventRecord(around_[id].first, stream));
        if (gated || plan_.tasks[id].kind != PlanKind::wait) step.operation(stream);
        // An event with a time takes microseconds, which those that wait for the mark would wait, too.
        if (marks_[id] && times == Times::ends) check(hipEventRecord(marks_[id], stream));
        if (times != Times::none) check(hipEventRecord(around_[id].second, stream));
        if (marks_[id] && times != Times::ends) check(hipEventRecord(marks_[id], stream));
    }
    for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
        on(plan_.streams[stream].gpu);
        check(hipEventRecord(ends_[stream], streams_[stream]));
    }
}

void Executor::run_first() {
    enqueue(false, Times::none);
    machine_.synchronize();
}

Execution Executor::run(Times times) {
    enqueue(true, times);
    gate().open();
    machine_.synchronize();

    const auto since_release = [&](int gpu, hipEvent_t event) {
        return microseconds_between(releases_.at(gpu), event);
    };
    Execution execution;
    for (std::size_t i = 0; i < streams_.size(); ++i)
        execution.stream_ends.push_back(since_release(plan_.streams[i].gpu, ends_[i]));
    execution.makespan = *std::max_element(execution.stream_ends.begin(), execution.stream_ends.end());
    if (times == Times::none) return execution;
    std::vector<double> before(streams_.size(), 0);  // end of the last task, by stream
    for (std::size_t id = 0; id < steps_.size(); ++id) {
        const auto& [start, end] = around_[id];
        double& last = before[steps_[id].stream];
        double from = last;
        for (const std::size_t task : steps_[id].waits) from = std::max(from, execution.spans[task].end);
        if (times == Times::around) from = since_release(plan_.tasks[id].gpu, start);
        execution.spans.push_back({from, last = since_release(plan_.tasks[id].gpu, end)});
    }
    return execution;
}

}  // namespace overlap::hip
