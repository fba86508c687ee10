#include "sim/transformer/layer.hpp"

#include <algorithm>

#include "sim/transformer/weights.hpp"

namespace overlap {
namespace {

/// Weights of a layer on one GPU, those of routed experts apart. Every GPU has the router and the projections into
/// latents.
struct LocalWeights {
    double experts = 0, rest = 0;
};

LocalWeights local_weights(const Model& model, const StepShape& step, bool of_experts) {
    Model without = model;
    without.experts.count = 0;
    const double all = static_cast<double>(layer_parameters(model, of_experts));
    const Whole router = model.hidden * model.experts.count;
    const double rest = of_experts ? static_cast<double>(layer_parameters(without, true) + router) : all;
    const double latents = static_cast<double>(model.attention.latent_columns() * model.hidden);
    const int parts = step.spread.experts > 1 ? step.spread.experts : step.spread.tensor;
    return {(all - rest) / parts, (rest - latents) / step.spread.tensor + latents};
}

std::vector<HeldWeights> held_weights(const Model& model, const StepShape& step, bool of_experts) {
    const LocalWeights weights = local_weights(model, step, of_experts);
    const Parallelism& spread = step.spread;
    const HeldWeights rest{"", weights.rest, spread.data, spread.data_group()};
    if (spread.experts == 1 || !of_experts)
        return {{"", weights.rest + weights.experts, rest.copies, rest.group}};
    return {rest, {"expert_", weights.experts, spread.expert_copies(), spread.expert_copies_group()}};
}

HeldWeights head_weights(const Model& model, const StepShape& step) {
    const Whole columns = share(model.vocabulary, step.spread.tensor);
    return {"", static_cast<double>(columns * model.hidden) * (model.tied || model.encoder ? 1 : 2),
            step.spread.data, step.spread.data_group()};
}

}  // namespace

std::size_t add_gather(const StepShape& step, const std::string& name, std::int64_t columns,
                       std::size_t source, OperatorList& list) {
    if (!shards_sequence(step)) return source;
    return list.add(name,
                    list.collective(CollectiveKind::all_gather, rows_of(step), columns, false,
                                    step.spread.tensor_group()),
                    {source});
}

void add_reduce(const StepShape& step, const std::string& name, std::int64_t columns, OperatorList& list) {
    if (step.spread.tensor == 1) return;
    const auto kind = shards_sequence(step) ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    list.add(name, list.collective(kind, rows_of(step), columns, true, step.spread.tensor_group()));
}

std::vector<LayerKind> layer_kinds(const Model& model) {
    std::vector<LayerKind> kinds;
    const std::vector<bool>& windows = model.attention.windowed;
    bool experts_differ = false, windows_differ = false;
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        const bool of_experts = layer >= model.dense_layers();
        const bool windowed = windows.empty() || windows[static_cast<std::size_t>(layer) % windows.size()];
        auto kind = std::ranges::find_if(kinds, [&](const LayerKind& one) {
            return one.of_experts == of_experts && one.windowed == windowed;
        });
        if (kind == kinds.end()) kind = kinds.insert(kind, {"", 0, of_experts, windowed});
        ++kind->count;
        experts_differ = experts_differ || of_experts != kinds.front().of_experts;
        windows_differ = windows_differ || windowed != kinds.front().windowed;
    }
    for (LayerKind& kind : kinds) {
        if (experts_differ) kind.name += kind.of_experts ? "experts_" : "dense_";
        if (windows_differ) kind.name += kind.windowed ? "window_" : "global_";
        kind.name += "layer";
    }
    return kinds;
}

std::vector<Operator> layer_operators(const Model& model, const StepShape& step, const LayerKind& kind) {
    if (!kind.windowed && model.attention.window > 0) {
        Model everywhere = model;
        everywhere.attention.window = 0;
        return layer_operators(everywhere, step, kind);
    }
    const bool of_experts = kind.of_experts;
    OperatorList list(step.dtype);
    const Whole hidden = norm_rows_of(step) * model.hidden;
    list.add("attention_norm", list.streams(hidden, hidden), {});
    std::size_t input = add_attention(model, step, list.last(), list);
    const std::size_t attention_out = list.last();
    const bool exchanged = of_experts && step.spread.experts > 1;
    if (!model.parallel) {
        add_reduce(step, "attention_reduce", model.hidden, list);
        if (model.norms_behind) list.add("attention_post_norm", list.streams(hidden, hidden));
        list.add("mlp_norm", list.streams(2 * hidden, 2 * hidden));
    } else if (model.norms > 1) {
        list.add("mlp_norm", list.streams(hidden, hidden), {});
    }
    if (of_experts) {
        add_experts(model, step, list.last(), list);
    } else {
        if (!model.parallel || model.norms > 1)
            input = add_gather(step, "mlp_gather", model.hidden, list.last(), list);
        add_mlp(model, step, input, list);
    }
    if (model.parallel) {  // both results are added before the reduction
        const Whole made = rows_of(step) * model.hidden;
        list.add("branches_sum", list.streams(2 * made, made), {attention_out, list.last()});
    }
    if (!exchanged) add_reduce(step, model.parallel ? "layer_reduce" : "mlp_reduce", model.hidden, list);
    if (model.norms_behind) list.add("mlp_post_norm", list.streams(hidden, hidden));
    list.add("residual", list.streams(2 * hidden, hidden));
    return with_weights(step, std::move(list).take(), held_weights(model, step, of_experts),
                        WeightsOf::neighbour);
}

std::vector<Operator> head_operators(const Model& model, const StepShape& step) {
    OperatorList list(step.dtype);
    const Whole rows = rows_of(step), norm_rows = norm_rows_of(step);
    list.add("embedding", list.streams(norm_rows * model.hidden, norm_rows * model.hidden), {});
    list.add("last_norm", list.streams(norm_rows * model.hidden, norm_rows * model.hidden));
    if (!model.encoder) {
        const Whole columns = share(model.vocabulary, step.spread.tensor);
        const bool prefill = step.phase == Phase::prefill;
        const Whole answered = prefill ? Whole(share(rows, step.sequence)) : rows;
        if (shards_sequence(step))
            list.add("output_gather", list.collective(CollectiveKind::all_gather, answered, model.hidden,
                                                      false, step.spread.tensor_group()));
        list.add("output", list.gemm(answered, columns, model.hidden));
        if (model.logits_capped) list.add("logits_cap", list.streams(answered * columns, answered * columns));
    }
    return with_weights(step, std::move(list).take(), {head_weights(model, step)}, WeightsOf::itself);
}

Bytes least_memory(const Model& model, const StepShape& step) {
    // Mixed precision with Adam (arXiv 1910.02054, section 3.1): weight and gradient of 2 bytes, and three numbers of 4.
    const bool trains = step.phase == Phase::training;
    const Bytes each = trains ? Bytes(2 + 2 + 3 * 4) : element_size(step.dtype);
    const auto held = [&](const HeldWeights& weights) {
        return weights.count / (step.spread.sharded ? weights.copies : 1) * each;
    };
    Bytes sum = held(head_weights(model, step));
    for (const LayerKind& kind : layer_kinds(model)) {
        const auto count = static_cast<double>(kind.count);
        for (const HeldWeights& weights : held_weights(model, step, kind.of_experts))
            sum += count * held(weights);
        if (step.phase != Phase::decode) continue;
        for (const Operator& op : layer_operators(model, step, kind))
            if (op.name == "attention") sum += count * std::get<StreamingWork>(op.work).read;
    }
    return sum;
}

Flops flops_of(const std::vector<Operator>& operators) {
    Flops sum;
    for (const Operator& op : operators) {
        if (const auto* gemm = std::get_if<GemmShape>(&op.work)) sum += gemm->flops();
        if (const auto* kernel = std::get_if<StreamingWork>(&op.work)) sum += kernel->flops;
    }
    return sum;
}

Flops model_flops(const Model& model, const StepShape& step) {
    StepShape alone = step;
    alone.spread = {};
    Flops sum = flops_of(head_operators(model, alone));
    for (const LayerKind& kind : layer_kinds(model))
        sum += static_cast<double>(kind.count) * flops_of(layer_operators(model, alone, kind));
    return sum;
}

}  // namespace overlap
