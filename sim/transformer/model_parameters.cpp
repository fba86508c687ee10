
#include "sim/transformer/model.hpp"

namespace overlap {
namespace {

/// Weights of a projection and, with `bias`, its biases.
Whole projection_weights(Whole inputs, Whole outputs, bool bias) {
    return inputs * outputs + (bias ? outputs : Whole(0));
}

Whole norm_weights(const Model& model, Whole width) {
    return (model.centred ? 2 : 1) * width;
}

Whole attention_parameters(const Model& model) {
    const AttentionShape& a = model.attention;
    const Whole out = projection_weights(a.heads * a.value_dim, model.hidden, a.out_bias);
    if (!a.latent())
        return projection_weights(model.hidden, (a.heads + 2 * a.kv_heads) * a.head_dim, a.qkv_bias) + out +
               (a.normalised ? 2 * norm_weights(model, a.head_dim) : Whole(0));
    const Whole queries = a.q_rank == 0 ? model.hidden * a.heads * a.head_dim
                                               : model.hidden * a.q_rank + norm_weights(model, a.q_rank) +
                                                     a.q_rank * a.heads * a.head_dim;
    const Whole nope = a.head_dim - a.rope_dim;
    return queries + model.hidden * (a.kv_rank + a.rope_dim) + norm_weights(model, a.kv_rank) +
           a.kv_rank * a.heads * (nope + a.value_dim) + out;
}

Whole mlp_parameters(const Model& model, Whole width) {
    return (model.gated ? 2 : 1) * projection_weights(model.hidden, width, model.mlp_bias) +
           projection_weights(width, model.hidden, model.mlp_bias);
}

/// Of a layer whose tokens go to `experts` experts besides the shared ones.
Whole layer_with(const Model& model, bool of_experts, Whole experts) {
    const Whole norms = model.norms + (model.norms_behind ? 2 : 0);
    const Whole rest = attention_parameters(model) + norms * norm_weights(model, model.hidden);
    if (!of_experts) return rest + mlp_parameters(model, model.width);
    const ExpertsShape& e = model.experts;
    return rest + projection_weights(model.hidden, e.count, e.router_bias) +
           (e.shared_gate ? model.hidden : Whole(0)) + (experts + e.shared) * mlp_parameters(model, e.width);
}

Whole all_weights(const Model& model, Whole experts) {
    const Whole dense = model.dense_layers();
    const Whole layers =
        dense * layer_with(model, false, 0) + (model.layers - dense) * layer_with(model, true, experts);
    const Whole embeddings = (model.vocabulary + model.learned_rows) * model.hidden;
    if (model.encoder)
        return layers + embeddings + norm_weights(model, model.hidden) +
               projection_weights(model.hidden, model.hidden, true);
    const Whole head =
        (model.tied ? Whole(0) : model.vocabulary * model.hidden) + (model.head_bias ? model.vocabulary : Whole(0));
    return layers + embeddings + head + norm_weights(model, model.hidden);
}

}  // namespace

std::int64_t layer_parameters(const Model& model, bool of_experts) {
    return layer_with(model, of_experts, model.experts.count);
}

std::int64_t parameters(const Model& model) {
    return all_weights(model, model.experts.count);
}

std::int64_t active_parameters(const Model& model) {
    return all_weights(model, model.experts.chosen);
}

}  // namespace overlap
