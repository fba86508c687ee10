#include "sim/transformer/pipeline.hpp"

#include <algorithm>

namespace overlap {
namespace {

enum class Pass { forward, backward, weights };

struct Step {
    Pass pass;
    int chunk;
    std::int64_t micro_batch;
};

/// The steps of one stage, one after another.
class StageOrder {
public:
    StageOrder(const Pipeline& pipeline, int stage) : pipeline_(pipeline) {
        const std::int64_t behind = pipeline.stages - stage - 1,
                           all = pipeline.micro_batches * pipeline.chunks;
        // Megatron-Core, core/pipeline_parallel/schedules.py: micro-batches before the first backward pass.
        const std::int64_t filled = std::min(
            all, pipeline.chunks == 1 ? behind : 2 * behind + (pipeline.chunks - 1) * pipeline.stages);
        const bool apart = pipeline.order == PipelineOrder::zero_bubble;
        // Stages that would be idle at the end keep as many gradients of weights for it.
        const std::int64_t kept = apart ? stage : 0;
        for (std::int64_t number = 0; number < filled; ++number) add(Pass::forward, number);
        for (std::int64_t number = 0; number < all; ++number) {
            if (filled + number < all) add(Pass::forward, filled + number);
            add(Pass::backward, number);
            if (apart && number >= kept) add(Pass::weights, number - kept);
        }
        if (!apart) return;
        for (std::int64_t number = std::max<std::int64_t>(all - kept, 0); number < all; ++number)
            add(Pass::weights, number);
    }

    const std::vector<Step>& steps() const { return steps_; }

private:
    /// Chunks take turns after as many micro-batches as there are stages.
    void add(Pass pass, std::int64_t number) {
        const std::int64_t turn = std::int64_t{pipeline_.stages} * pipeline_.chunks;
        const auto chunk = static_cast<int>(number % turn / pipeline_.stages);
        steps_.push_back({pass, pass == Pass::forward ? chunk : pipeline_.chunks - 1 - chunk,
                          number / turn * pipeline_.stages + number % pipeline_.stages});
    }

    const Pipeline& pipeline_;
    std::vector<Step> steps_;
};

/// Ends of the passes of all virtual stages; below 0: not yet known.
class Passes {
public:
    explicit Passes(const Pipeline& pipeline)
        : pipeline_(pipeline),
          ends_(2 * static_cast<std::size_t>(pipeline.virtual_stages() * pipeline.micro_batches),
                Seconds(-1)) {}

    Seconds& end(Pass pass, int virtual_stage, std::int64_t micro_batch) {
        const std::int64_t row = 2 * virtual_stage + (pass == Pass::forward ? 0 : 1);
        return ends_[static_cast<std::size_t>(row * pipeline_.micro_batches + micro_batch)];
    }

    /// When what a step needs is there; below 0: not yet known.
    Seconds ready(const Step& step, int virtual_stage, Seconds send) {
        if (step.pass == Pass::weights) return {};
        const bool forward = step.pass == Pass::forward;
        const int last = pipeline_.virtual_stages() - 1;
        if (forward && virtual_stage == 0) return {};
        if (!forward && virtual_stage == last) return end(Pass::forward, last, step.micro_batch);
        const Seconds before = end(step.pass, virtual_stage + (forward ? -1 : 1), step.micro_batch);
        return before < Seconds() || pipeline_.stages == 1 ? before : before + send;
    }

private:
    const Pipeline& pipeline_;
    std::vector<Seconds> ends_;
};

Seconds time_of(const Step& step, const StageTimes& times, const Pipeline& pipeline) {
    if (step.pass == Pass::forward) return times.forward;
    if (step.pass == Pass::weights) return times.weights;
    return pipeline.order == PipelineOrder::zero_bubble ? times.backward - times.weights : times.backward;
}

/// Whether the gradients of a chunk's weights are complete after a step.
bool completes(const Step& step, const Pipeline& pipeline) {
    const Pass by = pipeline.order == PipelineOrder::zero_bubble ? Pass::weights : Pass::backward;
    return step.pass == by && step.micro_batch + 1 == pipeline.micro_batches;
}

}  // namespace

double Pipeline::in_flight() const {
    const auto most = static_cast<double>(micro_batches);
    // arXiv 2205.05198, section 4.2.3: interleaving holds 1 + (p − 1) / (p m) as much.
    const double interleaved = 1 + (stages - 1.0) / virtual_stages();
    return std::min(most, chunks == 1 ? stages : stages * interleaved);
}

PipelineTimes times_of(const Pipeline& pipeline, std::span<const StageTimes> stages, Seconds send) {
    std::vector<StageOrder> orders;
    for (int stage = 0; stage < pipeline.stages; ++stage) orders.emplace_back(pipeline, stage);
    Passes passes(pipeline);
    const auto count = static_cast<std::size_t>(pipeline.stages);
    std::vector<Seconds> free(count), busy(count), summed(count);
    std::vector<std::size_t> done(count, 0);
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t stage = 0; stage < count; ++stage) {
            const std::vector<Step>& steps = orders[stage].steps();
            for (; done[stage] < steps.size(); ++done[stage]) {
                const Step& step = steps[done[stage]];
                const int place = step.chunk * pipeline.stages + static_cast<int>(stage);
                const Seconds ready = passes.ready(step, place, send);
                if (ready < Seconds()) break;
                const StageTimes& times = stages[static_cast<std::size_t>(place)];
                const Seconds time = time_of(step, times, pipeline);
                free[stage] = std::max(free[stage], ready) + time;
                busy[stage] += time;
                if (step.pass != Pass::weights) passes.end(step.pass, place, step.micro_batch) = free[stage];
                if (completes(step, pipeline))
                    summed[stage] = std::max(summed[stage], free[stage]) + times.last;
                moved = true;
            }
        }
    }
    for (std::size_t stage = 0; stage < count; ++stage)
        busy[stage] += std::max(summed[stage] - free[stage], Seconds());
    return {std::max(std::ranges::max(free), std::ranges::max(summed)), std::ranges::max(busy)};
}

std::vector<std::int64_t> layers_of_stages(const Pipeline& pipeline, std::int64_t layers) {
    const auto count = static_cast<std::int64_t>(pipeline.virtual_stages());
    const std::int64_t each = (layers + count - 1) / count;
    std::vector<std::int64_t> all(static_cast<std::size_t>(count), each);
    for (std::int64_t missing = 0; missing < each * count - layers; ++missing) {
        const auto inward = static_cast<std::size_t>(missing / 2);
        --(missing % 2 == 0 ? all[all.size() - 1 - inward] : all[inward]);
    }
    return all;
}

}  // namespace overlap
