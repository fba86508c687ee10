#include "sim/transformer/pipeline_times.hpp"

#include <algorithm>
#include <cassert>

#include "sim/transformer/pipeline_order.hpp"

namespace overlap {
namespace {

/// The passes of a step that others wait for, or that wait for others.
struct Half {
    bool forward;
    int row;    ///< of PipelineRun
    int stage;  ///< virtual stage, whose times it takes
    std::int64_t micro_batch;
};

class PipelineRun {
public:
    PipelineRun(const Pipeline& pipeline, std::span<const StageTimes> stages, Seconds send)
        : pipeline_(pipeline),
          stages_(stages),
          send_(send),
          rows_(pipeline.virtual_stages() * pipeline.directions()),
          ends_(2 * static_cast<std::size_t>(rows_ * pipeline.micro_batches), not_known),
          gpus_(static_cast<std::size_t>(pipeline.stages)) {
        for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu)
            gpus_[gpu].steps = steps_of(pipeline, static_cast<int>(gpu));
    }

    PipelineTimes run() {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu)
                while (advance(static_cast<int>(gpu), gpus_[gpu])) moved = true;
        }
        PipelineTimes times;
        for (const Gpu& gpu : gpus_) {
            assert(gpu.done == gpu.steps.size());
            times.makespan = std::max({times.makespan, gpu.free, gpu.summed});
            times.busy = std::max(times.busy, gpu.busy + std::max(gpu.summed - gpu.free, Seconds()));
        }
        return times;
    }

private:
    static constexpr Seconds not_known{-1};

    struct Gpu {
        std::vector<PipelineStep> steps;
        std::size_t done = 0;
        Seconds free, busy;
        Seconds summed;  ///< end of sums of gradients and the optimiser
    };

    /// Does the next step, if what it needs is there.
    bool advance(int stage, Gpu& gpu) {
        if (gpu.done == gpu.steps.size()) return false;
        const PipelineStep& step = gpu.steps[gpu.done];
        const std::vector<Half> halves = halves_of(step, stage);
        Seconds start = gpu.free;
        for (const Half& half : halves) {
            if (step.pass == Pass::weights) continue;
            const Seconds ready = this->ready(half);
            if (ready == not_known) return false;
            start = std::max(start, ready);
        }
        const Seconds time = time_of(step.pass, halves);
        gpu.free = start + time;
        gpu.busy += time;
        ++gpu.done;
        for (const Half& half : halves) finish(step.pass, half, gpu);
        return true;
    }

    std::vector<Half> halves_of(const PipelineStep& step, int stage) const {
        const auto half = [&](bool forward, int chunk, std::int64_t micro_batch) {
            const bool two = pipeline_.directions() == 2;
            const int place = two && chunk == 1 ? pipeline_.stages - 1 - stage : stage,
                      row = chunk * pipeline_.stages + place;
            return Half{forward, row, two ? place : row, micro_batch};
        };
        if (step.pass == Pass::together)
            return {half(true, step.chunk, step.micro_batch), half(false, 1 - step.chunk, step.backward_of)};
        return {half(step.pass == Pass::forward, step.chunk, step.micro_batch)};
    }

    /// When what a pass needs is there.
    Seconds ready(const Half& half) {
        const int first = pipeline_.directions() == 2 ? half.row / pipeline_.stages * pipeline_.stages : 0,
                  last = first + pipeline_.virtual_stages() - 1;
        if (half.forward && half.row == first) return {};
        if (!half.forward && half.row == last) return end({true, last, half.stage, half.micro_batch});
        const Seconds before =
            end({half.forward, half.row + (half.forward ? -1 : 1), half.stage, half.micro_batch});
        return before == not_known || pipeline_.stages == 1 ? before : before + send_;
    }

    Seconds time_of(Pass pass, const std::vector<Half>& halves) const {
        const StageTimes& times = of(halves.front());
        if (pass == Pass::forward) return times.forward;
        if (pass == Pass::backward) return times.backward;
        if (pass == Pass::weights) return times.weights;
        if (pass == Pass::inputs) return times.backward - times.weights;
        const StageTimes& other = of(halves.back());
        return times.forward + other.backward - std::min(times.gain, other.gain);
    }

    void finish(Pass pass, const Half& half, Gpu& gpu) {
        if (pass != Pass::weights) end(half) = gpu.free;
        const bool completes = !half.forward && pass != Pass::inputs &&
                               half.micro_batch + 1 == pipeline_.micro_batches / pipeline_.directions();
        if (completes) gpu.summed = std::max(gpu.summed, gpu.free) + of(half).last;
    }

    const StageTimes& of(const Half& half) const { return stages_[static_cast<std::size_t>(half.stage)]; }
    Seconds& end(const Half& half) {
        const std::int64_t line = 2 * half.row + (half.forward ? 0 : 1);
        return ends_[static_cast<std::size_t>(line * pipeline_.micro_batches + half.micro_batch)];
    }

    const Pipeline& pipeline_;
    std::span<const StageTimes> stages_;
    Seconds send_;
    int rows_;                   ///< virtual stages of each direction
    std::vector<Seconds> ends_;  ///< of forward and backward passes
    std::vector<Gpu> gpus_;
};

}  // namespace

PipelineTimes times_of(const Pipeline& pipeline, std::span<const StageTimes> stages, Seconds send) {
    return PipelineRun(pipeline, stages, send).run();
}

}  // namespace overlap
