#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/whole.hpp"

namespace overlap {

/// Attention of one layer. Latent attention (DeepSeek) has `kv_rank` > 0: queries and keys have `head_dim` numbers a
/// head, `rope_dim` of them rotated and one for all heads in the keys; values have `value_dim`.
struct AttentionShape {
    Whole heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
    Whole q_rank = 0, kv_rank = 0, rope_dim = 0;
    Whole window = 0;     ///< tokens that a token attends to; 0: all before it
    std::vector<bool> windowed;  ///< by layer, in turns, whether the window holds there; empty: in all
    bool causal = true;
    bool rotary = true;
    bool qkv_bias = false, out_bias = false,
         normalised = false;  ///< normalised: a norm of queries and keys a head

    bool latent() const { return kv_rank > 0; }
    /// Columns of the projections into the latents.
    Whole latent_columns() const { return q_rank + kv_rank + rope_dim; }
};

/// Experts of the layers that have them; `count` 0: none.
struct ExpertsShape {
    Whole count = 0, chosen = 0, width = 0;
    Whole shared = 0;       ///< experts that every token goes to
    Whole first_dense = 0;  ///< layers at the start with an MLP instead
    bool router_bias = false;      ///< of each expert's score
    bool shared_gate = false;      ///< a score of the shared experts' result
};

/// A transformer, as a Hugging Face config.json describes it.
struct Model {
    std::string name, family;
    Whole hidden = 0, layers = 0, width = 0;  ///< width: of the MLP
    Whole vocabulary = 0, longest = 0;        ///< longest context, tokens
    AttentionShape attention;
    ExpertsShape experts;
    bool gated = true;  ///< the MLP multiplies two projections
    bool mlp_bias = false;
    bool centred = false;        ///< LayerNorm, which has a bias, instead of RMSNorm
    Whole norms = 2;      ///< of a layer
    bool norms_behind = false;   ///< two more, of the results of attention and MLP
    bool logits_capped = false;  ///< of the output projection, by a kernel (tanh)
    bool parallel = false;       ///< attention and MLP read the same input, and their results are added
    bool tied = false;           ///< the output projection is the embedding
    bool head_bias = false;
    bool encoder = false;           ///< BERT: no output projection, a norm of the embeddings, a pooler
    Whole learned_rows = 0;  ///< of embeddings of positions and of types of tokens

    Whole dense_layers() const {
        return experts.count == 0 ? layers : std::min(experts.first_dense, layers);
    }
};

/// Layers that are alike but for the values of their weights.
struct LayerKind {
    std::string name;  ///< "layer" where the model has only one kind
    std::int64_t count = 0;
    bool of_experts = false;
    bool windowed = true;  ///< AttentionShape::window holds
};
/// The kinds in the order of their first layers.
std::vector<LayerKind> layer_kinds(const Model& model);

/// Numbers of weights, biases included.
std::int64_t layer_parameters(const Model& model, bool of_experts);
std::int64_t parameters(const Model& model);
/// Those that a token is multiplied with or scaled by: without the experts that it does not go to.
std::int64_t active_parameters(const Model& model);

/// Reads a Hugging Face config.json, or a file of configs/models, which has the same keys. Of a model that also sees or
/// hears it reads the part that makes text ("text_config"). Keys that do not change operators are ignored. Throws UserError for a family that is not known, or a size that is missing or makes no sense.
Model read_model(ConfigObject config, const std::string& name);
Json model_schema();

}  // namespace overlap
