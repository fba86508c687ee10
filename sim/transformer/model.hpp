#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/whole.hpp"
#include "sim/transformer/families.hpp"
#include "sim/transformer/weight_format.hpp"

namespace overlap {

/// Latent attention (DeepSeek) has `kv_rank` > 0: queries and keys have AttentionShape::head_dim numbers a head, `rope_dim`
/// of them rotated and one for all heads in the keys.
struct LatentShape {
    Whole q_rank = 0, kv_rank = 0, rope_dim = 0;

    bool latent() const { return kv_rank > 0; }
    /// Columns of the projections into the latents.
    Whole latent_columns() const { return q_rank + kv_rank + rope_dim; }
    friend bool operator==(const LatentShape&, const LatentShape&) = default;
};

/// What picks the tokens that a token attends to (DeepSeek V3.2).
struct IndexerShape {
    Whole index_heads = 0, index_dim = 0, index_tokens = 0;
    friend bool operator==(const IndexerShape&, const IndexerShape&) = default;
};

/// Attention of one layer; `heads` 0: it has none.
struct AttentionShape : LatentShape, IndexerShape {
    Whole heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
    Whole window = 0;  ///< tokens that a token attends to; 0: all before it
    Whole gate = 0;    ///< columns beside those of the queries that scale the result
    Whole other = 0;   ///< weights that belong to no GEMM: norms of queries and keys, sinks
    bool causal = true;
    bool rotary = true;
    bool makes_keys = true, makes_values = true;  ///< else those of another layer, or the keys themselves
    bool qkv_bias = false, out_bias = false;
    friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

/// A recurrence over the tokens instead of attention (gated linear attention, Mamba, a short convolution); `columns`
/// 0: the layer has none.
struct ScanShape {
    Whole columns = 0;               ///< of the projection from the hidden size
    Whole inner = 0;                 ///< depth of the projection back to it
    Whole channels = 0, kernel = 0;  ///< of the convolution over neighbouring tokens
    Whole state = 0;                 ///< numbers that a sequence keeps, besides the convolution's
    Whole other = 0;                 ///< weights besides the two projections and the convolution's
    Whole chunk = 0;  ///< tokens after which the state goes through memory, where whole sequences are read
    friend bool operator==(const ScanShape&, const ScanShape&) = default;
};

/// Experts of a layer; `count` 0: it has none.
struct ExpertsShape {
    Whole count = 0, chosen = 0, width = 0;
    Whole input = 0;           ///< numbers of a token that an expert reads and makes
    Whole shared_width = 0;    ///< of the experts that every token goes to, together
    Whole idle = 0;            ///< choices of the router that are no expert
    bool router_bias = false;  ///< of each expert's score
    bool shared_gate = false;  ///< a score of the shared experts' result
    friend bool operator==(const ExpertsShape&, const ExpertsShape&) = default;
};

/// What layers that are alike have.
struct LayerShape {
    AttentionShape attention;
    ScanShape scan;
    Whole width = 0;  ///< of the MLP; 0: none
    ExpertsShape experts;
    Whole norms = 2;
    Whole other = 0;            ///< weights that no operator here has
    bool norms_behind = false;  ///< norms of the results of attention and MLP
    bool parallel = false;      ///< attention and MLP read the same input, and their results are added
    bool mlp_bias = false, experts_bias = false;
    std::string unread;  ///< what it has instead of attention, if that is not known here

    bool of_experts() const { return experts.count > 0; }
    bool mixes() const { return attention.heads > 0 || scan.columns > 0; }
    bool has_mlp() const { return width > 0 || of_experts(); }
    friend bool operator==(const LayerShape&, const LayerShape&) = default;
};

/// What a model has around its layers.
struct HeadShape {
    Whole vocabulary = 0;
    Whole around = 0;  ///< weights besides embedding, last norm and output projection
    bool last_norm = true;
    bool logits_capped = false;  ///< of the output projection, by a kernel (tanh)
    bool tied = false;           ///< the output projection is the embedding
    bool head_bias = false;
    bool encoder = false;       ///< BERT: no output projection, a norm of the embeddings, a pooler
    Whole embedding_width = 0;  ///< numbers of a token in the embedding, mostly Model::hidden
    Whole learned_rows = 0;     ///< of embeddings of positions and of types of tokens
};

/// A transformer, as a Hugging Face config.json describes it.
struct Model : HeadShape {
    std::string name, family;
    Whole hidden = 0, layers = 0;
    Whole longest = 0;                  ///< longest context, tokens
    std::vector<LayerShape> shapes;     ///< of the kinds of layers
    std::vector<std::size_t> shape_of;  ///< by layer, in turns
    bool gated = true;                  ///< the MLP multiplies two projections
    Whole norm_terms = 1;  ///< weights for each number that is normalised: LayerNorm has a bias, too
    Whole predicting = 0;  ///< of `layers`, the last ones, which predict further tokens
    WeightFormat stored;   ///< weights of the published files
    std::vector<std::string> notes;  ///< what of the file is not read, and what was taken instead

    /// Whether any layer has experts, or attention through latents.
    bool has_experts() const;
    bool latent() const;
};

/// Adds layers that predict further tokens in training (multi-token prediction, arXiv 2412.19437, section 2.2): each is
/// like the last layer, behind a projection of its result and of the next token's embedding.
void add_predicting_layers(Model& model, std::int64_t count);

/// Layers that are alike but for the values of their weights.
struct LayerKind {
    std::string name;  ///< "layer" where the model has only one kind
    std::int64_t count = 0;
    LayerShape shape;
};
/// The kinds in the order of their first layers.
std::vector<LayerKind> layer_kinds(const Model& model);
/// The place in layer_kinds of each layer's kind.
std::vector<std::size_t> kinds_of_layers(const Model& model);

/// Numbers of weights, biases included.
std::int64_t layer_parameters(const Model& model, const LayerShape& layer);
/// Numbers of weights of a layer's experts that tokens are sent to.
std::int64_t routed_parameters(const Model& model, const LayerShape& layer);
std::int64_t parameters(const Model& model);
/// Those that a token is multiplied with or scaled by: without the experts that it does not go to.
std::int64_t active_parameters(const Model& model);

/// Whether a model with layers that are not known here is read without them.
enum class Unread { refused, left_out };
/// Reads a Hugging Face config.json, or a file of configs/models, which has the same keys. Of a model that also sees
/// or hears it reads the part that makes text. Throws UserError for a structure that is not known, or a size that is
/// missing or makes no sense.
Model read_model(ConfigObject config, const std::string& name, const Families& families,
                 Unread unread = Unread::refused);
Json model_schema(const Families& families);

}  // namespace overlap
