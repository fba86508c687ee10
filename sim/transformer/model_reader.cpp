#include <algorithm>
#include <array>
#include <cmath>

#include "sim/core/output_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/transformer/model.hpp"

namespace overlap {
namespace {

const std::array<std::string, 18> known_families{
    "llama",     "mistral",     "mixtral",     "qwen2",    "qwen2_moe", "qwen3",
    "qwen3_moe", "deepseek_v2", "deepseek_v3", "gemma",    "gemma2",    "gemma3_text",
    "phi",       "phi3",        "gpt2",        "gpt_neox", "falcon",    "bert"};

// clang-format off
/// The numbers and flags of a config. The readers of the families below say which of them a family has.
std::span<const Field<Model>> model_fields() {
    const auto size = [](std::string_view key, const char* doc, Range range = {1, 1e8}) { return Field<Model>::checked(key, doc).whole().plain_in(range); };
    const auto flag = [](std::string_view key, const char* doc) {
        Field<Model> field = Field<Model>::checked(key, doc).plain_in({});
        field.kind = Key::Kind::flag;
        return field;
    };
    static const std::vector<Field<Model>> rows{
        size("hidden_size", "Numbers of a token between layers."), size("n_embd", "The same of GPT-2."), size("intermediate_size", "Width of the MLP."),
        size("ffn_hidden_size", "The same of Falcon; default: 4 times hidden_size."), size("n_inner", "The same of GPT-2; default: 4 times n_embd."),
        flag("mlp_bias", "Projections of the MLP have biases."), size("num_hidden_layers", "Layers.", {1, 1e5}), size("n_layer", "The same of GPT-2.", {1, 1e5}),
        size("num_attention_heads", "Query heads."), size("n_head", "The same of GPT-2."), size("num_key_value_heads", "Key and value heads; default: as many as query heads."),
        size("num_kv_heads", "The same of Falcon."), flag("multi_query", "Falcon: one key and value head."),
        flag("new_decoder_architecture", "Falcon: grouped-query attention and two norms."), flag("parallel_attn", "Falcon: attention and MLP side by side."),
        flag("use_parallel_residual", "GPT-NeoX: attention and MLP side by side."), flag("bias", "Falcon: projections have biases."),
        flag("attention_bias", "Projections of attention have biases."), flag("alibi", "Falcon: no rotary positions."),
        size("head_dim", "Numbers of a head; default: hidden_size / heads."), size("vocab_size", "Tokens of the vocabulary."), size("type_vocab_size", "BERT: types of tokens."),
        size("max_position_embeddings", "Longest context."), size("n_positions", "The same of GPT-2."),
        size("sliding_window", "Tokens before it that a token attends to.", {0, 1e8}),
        size("sliding_window_pattern", "Gemma 3: the last of so many layers attends to all tokens."),
        flag("use_sliding_window", "Whether sliding_window holds; default: of Qwen no, else yes."),
        size("max_window_layers", "Qwen: so many first layers attend to all tokens.", {0, 1e8}),
        Field<Model>::checked("final_logit_softcapping", "Gemma 2: logits are limited by this times tanh, a kernel.").plain_in(positive),
        flag("tie_word_embeddings", "The output projection is the embedding."), size("num_local_experts", "Mixtral: experts."), size("num_experts", "Qwen: experts."),
        size("n_routed_experts", "DeepSeek: experts that tokens are sent to."), size("n_shared_experts", "DeepSeek: experts that every token goes to.", {0, 1e8}),
        size("num_experts_per_tok", "Experts of a token."), size("moe_intermediate_size", "Width of an expert."),
        size("shared_expert_intermediate_size", "Qwen2: width of the expert that every token goes to, a multiple of an expert's."),
        size("first_k_dense_replace", "DeepSeek: layers at the start without experts.", {0, 1e8}), size("q_lora_rank", "DeepSeek: numbers of the queries' latent.", {0, 1e8}),
        size("kv_lora_rank", "DeepSeek: numbers of the latent of keys and values."), size("qk_nope_head_dim", "DeepSeek: numbers of a query or key head that are not rotated."),
        size("qk_rope_head_dim", "DeepSeek: those that are."), size("v_head_dim", "DeepSeek: numbers of a value head.")};
    return rows;
}
// clang-format on

/// Reads keys that may be null, which Hugging Face's configs use for "none".
class ConfigSizes {
public:
    explicit ConfigSizes(ConfigObject& config) : config_(config) {}

    bool has(const std::string& key) { return config_.has(key) && !config_.raw(key).is_null(); }
    std::int64_t size(std::string_view key) {
        return std::llround(read_value(config_, *std::ranges::find(model_fields(), key, &Key::key), 0));
    }
    std::int64_t size(const std::string& key, std::int64_t otherwise) {
        return has(key) ? size(key) : otherwise;
    }
    bool flag(const std::string& key, bool otherwise) { return has(key) ? size(key) != 0 : otherwise; }
    std::vector<std::string> texts(const std::string& key) { return config_.texts(key); }
    [[noreturn]] void fail(const std::string& key, const std::string& message) { config_.fail(key, message); }

private:
    ConfigObject& config_;
};

const std::array<std::string, 2> layer_types{"sliding_attention", "full_attention"};

/// Which layers the window holds in: as "layer_types" lists them, or as the family's code deals them out.
std::vector<bool> windowed_layers(ConfigSizes& from, const Model& model) {
    std::vector<bool> windowed;
    if (from.has("layer_types")) {
        for (const std::string& type : from.texts("layer_types")) {
            if (!contains(layer_types, type))
                from.fail("layer_types", "has " + in_quotes(type) +
                                             "; allowed are 'sliding_attention' and 'full_attention'");
            windowed.push_back(type == layer_types[0]);
        }
        if (std::ssize(windowed) != model.layers)
            from.fail("layer_types", "has " + std::to_string(windowed.size()) + " layers, the model " +
                                         std::to_string(model.layers));
        return windowed;
    }
    // huggingface/transformers v4.50, configuration_gemma2.py and _gemma3.py: every second, or sixth, layer is global.
    std::int64_t period = 0, first = 0;
    if (model.family == "gemma2") period = 2;
    if (model.family == "gemma3_text") period = from.size("sliding_window_pattern", 6);
    // configuration_qwen2.py: the first max_window_layers are global.
    if (model.family.starts_with("qwen")) first = from.size("max_window_layers", 0);
    for (std::int64_t layer = 0; layer < model.layers && (period > 0 || first > 0); ++layer)
        windowed.push_back(layer >= first && (period == 0 || (layer + 1) % period != 0));
    return windowed;
}

void read_common(ConfigSizes& from, Model& model) {
    model.hidden = from.size("hidden_size");
    model.layers = from.size("num_hidden_layers");
    AttentionShape& attention = model.attention;
    // The published files of Gemma 3 leave out what is as in configuration_gemma3.py.
    const bool gemma3 = model.family == "gemma3_text";
    model.vocabulary = gemma3 ? from.size("vocab_size", 262'208) : from.size("vocab_size");
    model.longest = from.size("max_position_embeddings", gemma3 ? 131'072 : 2048);
    attention.heads = gemma3 ? from.size("num_attention_heads", 8) : from.size("num_attention_heads");
    attention.kv_heads = from.size("num_key_value_heads", gemma3 ? Whole(4) : attention.heads);
    attention.head_dim = from.size("head_dim", gemma3 ? Whole(256) : model.hidden / attention.heads);
    // Qwen2's and Qwen3's files have a window that is off unless "use_sliding_window" says otherwise.
    if (!from.flag("use_sliding_window", !model.family.starts_with("qwen"))) return;
    attention.window = from.size("sliding_window", 0);
    if (attention.window > 0) attention.windowed = windowed_layers(from, model);
}

/// RMSNorm, a gated MLP, rotary positions; what Llama, Mistral, Qwen, Gemma, Phi-3 and mixtures of experts share.
void read_llama(ConfigSizes& from, Model& model) {
    read_common(from, model);
    model.width = from.size("intermediate_size");
    const bool gemma = model.family.starts_with("gemma");
    model.tied = from.flag("tie_word_embeddings", gemma);
    model.norms_behind = gemma && model.family != "gemma";
    model.logits_capped = model.family == "gemma2" && from.has("final_logit_softcapping");
    AttentionShape& attention = model.attention;
    const bool biased = from.flag("attention_bias", false);
    attention.qkv_bias = biased || model.family.starts_with("qwen2");
    attention.out_bias = biased;
    attention.normalised = model.family.starts_with("qwen3") || model.family == "gemma3_text";
    model.mlp_bias = from.flag("mlp_bias", false);
}

void read_latent_attention(ConfigSizes& from, Model& model) {
    AttentionShape& attention = model.attention;
    attention.rope_dim = from.size("qk_rope_head_dim");
    attention.head_dim = from.size("qk_nope_head_dim") + attention.rope_dim;
    attention.value_dim = from.size("v_head_dim");
    attention.q_rank = from.size("q_lora_rank", 0);
    attention.kv_rank = from.size("kv_lora_rank");
}

void read_experts(ConfigSizes& from, Model& model) {
    ExpertsShape& experts = model.experts;
    const bool deepseek = model.family.starts_with("deepseek"), mixtral = model.family == "mixtral";
    experts.count = from.size(deepseek ? "n_routed_experts" : mixtral ? "num_local_experts" : "num_experts");
    experts.chosen = from.size("num_experts_per_tok");
    experts.width = mixtral ? model.width : Whole(from.size("moe_intermediate_size"));
    experts.shared = deepseek ? from.size("n_shared_experts", 0) : 0;
    if (model.family == "qwen2_moe") {  // one shared expert, as wide as several
        const std::int64_t width = from.size("shared_expert_intermediate_size");
        if (width % experts.width != 0)
            from.fail("shared_expert_intermediate_size",
                      "is " + std::to_string(width) + ", no multiple of moe_intermediate_size");
        experts.shared = width / experts.width;
        experts.shared_gate = true;
    }
    experts.router_bias = model.family == "deepseek_v3";
    experts.first_dense = deepseek ? from.size("first_k_dense_replace", 0) : 0;
}

/// LayerNorm, an MLP of two projections, biases everywhere.
void read_biased(ConfigSizes& from, Model& model) {
    model.gated = false;
    model.centred = model.mlp_bias = model.attention.qkv_bias = model.attention.out_bias = true;
    if (model.family == "gpt2") {
        model.hidden = from.size("n_embd");
        model.layers = from.size("n_layer");
        model.attention.heads = model.attention.kv_heads = from.size("n_head");
        model.attention.head_dim = model.hidden / model.attention.heads;
        model.longest = from.size("n_positions");
        model.vocabulary = from.size("vocab_size");
        model.width = from.size("n_inner", 4 * model.hidden);
        model.learned_rows = model.longest;
        model.tied = from.flag("tie_word_embeddings", true);
        model.attention.rotary = false;
        return;
    }
    read_common(from, model);
    model.width = from.size("intermediate_size", 4 * model.hidden);
    model.tied = from.flag("tie_word_embeddings", model.family != "phi");
    if (model.family == "phi") {
        model.parallel = model.head_bias = true;
        model.norms = 1;
    } else if (model.family == "gpt_neox") {
        model.parallel = from.flag("use_parallel_residual", true);
    } else if (model.family == "bert") {
        model.encoder = true;
        model.attention.causal = model.attention.rotary = false;
        model.learned_rows = model.longest + from.size("type_vocab_size", 2);
    }
}

void read_falcon(ConfigSizes& from, Model& model) {
    read_common(from, model);
    const bool grouped = from.flag("new_decoder_architecture", false);
    const std::int64_t heads = model.attention.heads;
    model.attention.kv_heads = grouped                          ? from.size("num_kv_heads", heads)
                               : from.flag("multi_query", true) ? 1
                                                                : heads;
    model.width = from.size("ffn_hidden_size", 4 * model.hidden);
    model.gated = false;
    model.centred = true;
    model.mlp_bias = model.attention.qkv_bias = model.attention.out_bias = from.flag("bias", false);
    model.attention.rotary = !from.flag("alibi", false);
    model.parallel = grouped || from.flag("parallel_attn", true);
    model.norms = grouped || !model.parallel ? 2 : 1;
    model.tied = from.flag("tie_word_embeddings", true);
}

/// Throws UserError for sizes that do not go together.
void require_sense(const ConfigObject& config, const Model& model) {
    const AttentionShape& attention = model.attention;
    if (attention.heads % attention.kv_heads != 0)
        config.fail("num_key_value_heads", "is " + std::to_string(attention.kv_heads) +
                                               ", which does not divide the " +
                                               std::to_string(attention.heads) + " heads");
    if (model.experts.chosen > model.experts.count)
        config.fail("num_experts_per_tok", "is " + std::to_string(model.experts.chosen) + ", more than the " +
                                               std::to_string(model.experts.count) + " experts");
    try {
        parameters(model);
    } catch (const UserError& error) {
        config.fail("", std::string("has sizes of which no model is made: ") + error.what());
    }
    if (attention.head_dim < 1) config.fail("", "has more heads than its hidden size");
}

}  // namespace

Model read_model(ConfigObject config, const std::string& name) {
    if (config.has("text_config")) return read_model(config.object("text_config"), name);
    Model model;
    model.name = name;
    const std::string family = config.text("model_type");
    if (!contains(known_families, family))
        config.fail("model_type", "is " + in_quotes(family) + ", a family that is not read" +
                                      suggestion(family, known_families));
    model.family = family;
    ConfigSizes from(config);
    if (family == "falcon")
        read_falcon(from, model);
    else if (family == "gpt2" || family == "phi" || family == "gpt_neox" || family == "bert")
        read_biased(from, model);
    else
        read_llama(from, model);
    if (family.starts_with("deepseek")) read_latent_attention(from, model);
    if (family.starts_with("deepseek") || family == "mixtral" || family.ends_with("_moe"))
        read_experts(from, model);
    if (model.attention.value_dim == 0) model.attention.value_dim = model.attention.head_dim;
    require_sense(config, model);
    return model;
}

// clang-format off
Json model_schema() {
    Json schema = named_file_schema("Model", "A transformer, for sim model: keys of its Hugging Face config.json that operators depend on.");
    Json& keys = schema["properties"];
    keys["description"] = text_schema("The model in a sentence.", 1);
    keys["source"] = text_schema("The published config.json.", 1);
    schema["required"].push_back("source");
    schema["anyOf"] = {{{"required", {"model_type"}}}, {{"required", {"text_config"}}}};
    keys["model_type"] = choice_of(known_families, "Family.");
    keys["text_config"] = {{"description", "Of a multimodal model: the keys of its language model, instead of those here."}, {"type", "object"}};
    for (const Field<Model>& row : model_fields()) keys[std::string(row.key)] = field_schema(row, 0, "");
    keys["layer_types"] = {{"description", "Of each layer, whether the window holds in it."}, {"type", "array"}, {"items", {{"enum", layer_types}}}};
    for (const char* key : {"hidden_act", "activation_function"}) keys[key] = {{"description", "Activation; does not change operators."}, {"type", "string"}};
    return schema;
}
// clang-format on

}  // namespace overlap
