#include "sim/transformer/fused_norms.hpp"

#include <array>
#include <string>
#include <utility>

#include "sim/core/ranges.hpp"

namespace overlap {

bool reduces_normalise(const StepShape& step, const LayerShape& layer) {
    const bool exchanged = layer.of_experts() && step.spread.experts > 1;
    return step.decoding.fused_norms && step.phase == Phase::decode && step.spread.tensor > 1 &&
           !step.two_batches && !shards_sequence(step) && !exchanged && !layer.parallel &&
           !layer.norms_behind && layer.mixes() && layer.has_mlp();
}

std::vector<Operator> without_norms(std::vector<Operator> operators) {
    static const std::array<std::string, 3> fused{"attention_norm", "mlp_norm", "residual"};
    std::vector<Operator> kept;
    std::vector<std::vector<std::size_t>> places;  // of each operator: where it is now, or what it needed
    for (Operator& op : operators) {
        std::vector<std::size_t> needs;
        for (const std::size_t need : op.needs) append(needs, places[need]);
        if (contains(fused, op.name)) {
            places.push_back(std::move(needs));
            continue;
        }
        places.push_back({kept.size()});
        op.needs = std::move(needs);
        kept.push_back(std::move(op));
    }
    return kept;
}

}  // namespace overlap
