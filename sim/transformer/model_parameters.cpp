#include <algorithm>

#include "sim/transformer/model.hpp"

namespace overlap {
namespace {

/// Weights of a projection and, with `bias`, its biases.
Whole projection_weights(Whole inputs, Whole outputs, bool bias) {
    return inputs * outputs + (bias ? outputs : Whole(0));
}

Whole norm_weights(const Model& model, Whole width) {
    return model.norm_terms * width;
}

/// What picks the tokens that a token attends to: queries from the latents, one key, a weight of each head, and the
/// key's LayerNorm.
Whole index_parameters(const Model& model, const AttentionShape& a) {
    const Whole read = a.q_rank > 0 ? a.q_rank : model.hidden;
    return read * a.index_heads * a.index_dim + model.hidden * (a.index_dim + a.index_heads) +
           2 * a.index_dim;
}

Whole latent_parameters(const Model& model, const AttentionShape& a) {
    const Whole queries = a.q_rank == 0 ? model.hidden * a.heads * a.head_dim
                                        : model.hidden * a.q_rank + norm_weights(model, a.q_rank) +
                                              a.q_rank * a.heads * a.head_dim;
    const Whole nope = a.head_dim - a.rope_dim;
    return queries + model.hidden * (a.kv_rank + a.rope_dim) + norm_weights(model, a.kv_rank) +
           a.kv_rank * a.heads * (nope + a.value_dim);
}

Whole attention_parameters(const Model& model, const AttentionShape& a) {
    if (a.heads == 0) return 0;
    const Whole keys = a.makes_keys ? a.kv_heads * a.head_dim : Whole(0),
                values = a.makes_values ? a.kv_heads * a.value_dim : Whole(0);
    const Whole in = a.latent()
                         ? latent_parameters(model, a)
                         : projection_weights(model.hidden, a.heads * a.head_dim + keys + values, a.qkv_bias);
    return in + model.hidden * a.gate + projection_weights(a.heads * a.value_dim, model.hidden, a.out_bias) +
           a.other + (a.index_heads > 0 ? index_parameters(model, a) : Whole(0));
}

Whole scan_parameters(const Model& model, const ScanShape& scan) {
    return model.hidden * (scan.columns + scan.inner) + scan.channels * scan.kernel + scan.other;
}

Whole mlp_parameters(const Model& model, Whole input, Whole width, bool bias) {
    return (model.gated ? 2 : 1) * projection_weights(input, width, bias) +
           projection_weights(width, input, bias);
}

/// Weights of experts of which a token goes to `chosen`.
Whole experts_parameters(const Model& model, const LayerShape& layer, Whole chosen) {
    const ExpertsShape& e = layer.experts;
    const Whole latents = e.input == model.hidden ? Whole(0) : 2 * model.hidden * e.input;
    return projection_weights(model.hidden, e.count + e.idle, e.router_bias) + latents +
           (e.shared_gate ? model.hidden : Whole(0)) +
           chosen * mlp_parameters(model, e.input, e.width, layer.experts_bias) +
           mlp_parameters(model, model.hidden, e.shared_width, layer.mlp_bias && e.shared_width > 0);
}

Whole layer_with(const Model& model, const LayerShape& layer, Whole experts) {
    return attention_parameters(model, layer.attention) + scan_parameters(model, layer.scan) +
           layer.norms * norm_weights(model, model.hidden) + layer.other +
           (layer.width > 0 ? mlp_parameters(model, model.hidden, layer.width, layer.mlp_bias) : Whole(0)) +
           (layer.of_experts() ? experts_parameters(model, layer, experts) : Whole(0));
}

/// All weights; of a layer's experts those that a token goes to, or all.
Whole all_weights(const Model& model, bool only_chosen) {
    Whole sum = model.vocabulary * model.embedding_width + model.learned_rows * model.hidden + model.around;
    for (const LayerKind& kind : layer_kinds(model)) {
        const ExpertsShape& experts = kind.shape.experts;
        sum = sum +
              Whole(kind.count) * layer_with(model, kind.shape, only_chosen ? experts.chosen : experts.count);
    }
    if (model.last_norm) sum = sum + norm_weights(model, model.hidden);
    if (model.encoder) return sum + projection_weights(model.hidden, model.hidden, true);
    return sum + (model.tied ? Whole(0) : model.vocabulary * model.embedding_width) +
           (model.head_bias ? model.vocabulary : Whole(0));
}

}  // namespace

bool Model::has_experts() const {
    return std::ranges::any_of(shapes, &LayerShape::of_experts);
}

bool Model::latent() const {
    return std::ranges::any_of(shapes, [](const LayerShape& shape) { return shape.attention.latent(); });
}

std::int64_t layer_parameters(const Model& model, const LayerShape& layer) {
    return layer_with(model, layer, layer.experts.count);
}

std::int64_t routed_parameters(const Model& model, const LayerShape& layer) {
    const ExpertsShape& experts = layer.experts;
    return experts.count * mlp_parameters(model, experts.input, experts.width, layer.experts_bias);
}

void add_predicting_layers(Model& model, std::int64_t count) {
    std::vector<std::size_t> all;
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
        all.push_back(model.shape_of[static_cast<std::size_t>(layer) % model.shape_of.size()]);
    all.insert(all.end(), static_cast<std::size_t>(count), all.back());
    model.shape_of = std::move(all);
    model.layers = model.layers + count;
    model.predicting = count;
    const Whole projection = 2 * model.hidden * model.hidden, norms = 3 * model.hidden * model.norm_terms;
    model.around = model.around + (projection + norms) * count;
}

std::int64_t parameters(const Model& model) {
    return all_weights(model, false);
}

std::int64_t active_parameters(const Model& model) {
    return all_weights(model, true);
}

}  // namespace overlap
