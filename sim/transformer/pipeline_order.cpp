#include "sim/transformer/pipeline_order.hpp"

#include <algorithm>
#include <deque>

namespace overlap {
namespace {

/// 1f1b, interleaved and zero_bubble.
class OneDirection {
public:
    OneDirection(const Pipeline& pipeline, int stage) : pipeline_(pipeline) {
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
            add(apart ? Pass::inputs : Pass::backward, number);
            if (apart && number >= kept) add(Pass::weights, number - kept);
        }
        if (!apart) return;
        for (std::int64_t number = std::max<std::int64_t>(all - kept, 0); number < all; ++number)
            add(Pass::weights, number);
    }

    std::vector<PipelineStep> take() && { return std::move(steps_); }

private:
    /// Chunks take turns after as many micro-batches as there are stages.
    void add(Pass pass, std::int64_t number) {
        const std::int64_t turn = std::int64_t{pipeline_.stages} * pipeline_.chunks;
        const auto chunk = static_cast<int>(number % turn / pipeline_.stages);
        steps_.push_back({pass, pass == Pass::forward ? chunk : pipeline_.chunks - 1 - chunk,
                          number / turn * pipeline_.stages + number % pipeline_.stages});
    }

    const Pipeline& pipeline_;
    std::vector<PipelineStep> steps_;
};

/// The eight steps of github.com/deepseek-ai/DualPipe (bb214e8), dualpipe/dualpipe.py. `near` is the direction that
/// begins in the stage's half of the pipeline, `far` the other one.
class BothDirections {
public:
    BothDirections(const Pipeline& pipeline, int stage)
        : near_(stage < pipeline.stages / 2 ? 0 : 1), far_(1 - near_) {
        const std::int64_t half = pipeline.stages / 2,
                           outward = std::min(stage, pipeline.stages - 1 - stage) + 1,
                           inward = half - outward;
        fill(outward, inward);
        turn(pipeline.micro_batches / 2 - pipeline.stages + outward, inward);
        drain(outward, inward);
    }

    std::vector<PipelineStep> take() && { return std::move(steps_); }

private:
    /// Steps 1 to 3. `outward`: stages from this one to the nearer end; `inward`: to the middle.
    void fill(std::int64_t outward, std::int64_t inward) {
        for (std::int64_t i = 0; i < 2 * inward; ++i) forward(near_);
        for (std::int64_t i = 0; i < outward; ++i) {
            forward(near_);
            forward(far_);
        }
        for (std::int64_t i = 0; i < inward; ++i) {
            backward(far_, true);
            weights();
            forward(far_);
        }
    }

    /// Steps 4 and 5. The middle stages begin with one pass after another, which leaves a smaller bubble.
    void turn(std::int64_t rounds, std::int64_t inward) {
        for (std::int64_t i = 0; i < rounds; ++i) {
            if (i == 0 && inward == 0) {
                forward(near_);
                backward(far_, false);
            } else {
                together(near_);
            }
            together(far_);
        }
        for (std::int64_t i = 0; i < inward; ++i) {
            backward(far_, false);
            together(far_);
        }
    }

    /// Steps 6 to 8. The second half of step 6 keeps gradients of weights for later.
    void drain(std::int64_t outward, std::int64_t inward) {
        const std::int64_t passes = 2 * outward;
        for (std::int64_t i = 0; i < passes; ++i) backward(i % 2 == 0 ? far_ : near_, i >= outward);
        for (std::int64_t i = 0; i < inward; ++i) {
            weights();
            backward(near_, true);
        }
        for (std::int64_t i = 0; i < outward; ++i) weights();
    }

    void forward(int direction) { steps_.push_back({Pass::forward, direction, forwards_[direction]++}); }
    void backward(int direction, bool keeps_weights) {
        steps_.push_back({keeps_weights ? Pass::inputs : Pass::backward, direction, backwards_[direction]++});
        if (keeps_weights) kept_.push_back(steps_.back());
    }
    void weights() {
        steps_.push_back({Pass::weights, kept_.front().chunk, kept_.front().micro_batch});
        kept_.pop_front();
    }
    void together(int direction) {
        steps_.push_back({Pass::together, direction, forwards_[direction]++, backwards_[1 - direction]++});
    }

    int near_, far_;
    std::int64_t forwards_[2]{}, backwards_[2]{};  ///< passes of each direction so far
    std::deque<PipelineStep> kept_;                ///< whose gradients of weights are left
    std::vector<PipelineStep> steps_;
};

}  // namespace

std::vector<PipelineStep> steps_of(const Pipeline& pipeline, int stage) {
    if (pipeline.order == PipelineOrder::dualpipe) return BothDirections(pipeline, stage).take();
    return OneDirection(pipeline, stage).take();
}

std::int64_t passes_together(const Pipeline& pipeline) {
    if (pipeline.order != PipelineOrder::dualpipe) return 0;
    return std::ranges::count(steps_of(pipeline, 0), Pass::together, &PipelineStep::pass);
}

}  // namespace overlap
