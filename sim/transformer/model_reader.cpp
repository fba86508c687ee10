#include <algorithm>
#include <array>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/transformer/model.hpp"

namespace overlap {
namespace {

constexpr std::int64_t largest_size = 100'000'000, most_layers = 100'000;

const std::array<std::string, 18> known_families{
    "llama",     "mistral",     "mixtral",     "qwen2",    "qwen2_moe", "qwen3",
    "qwen3_moe", "deepseek_v2", "deepseek_v3", "gemma",    "gemma2",    "gemma3_text",
    "phi",       "phi3",        "gpt2",        "gpt_neox", "falcon",    "bert"};

/// Reads keys that may be null, which Hugging Face's configs use for "none".
class ConfigSizes {
public:
    explicit ConfigSizes(ConfigObject& config) : config_(config) {}

    bool has(const std::string& key) { return config_.has(key) && !config_.raw(key).is_null(); }
    std::int64_t size(const std::string& key) { return config_.integer(key, 1, largest_size); }
    std::int64_t layers(const std::string& key) { return config_.integer(key, 1, most_layers); }
    std::vector<std::string> texts(const std::string& key) { return config_.texts(key); }
    std::int64_t size(const std::string& key, std::int64_t otherwise) {
        return has(key) ? config_.integer(key, std::min<std::int64_t>(otherwise, 1), largest_size)
                        : otherwise;
    }
    [[noreturn]] void fail(const std::string& key, const std::string& message) { config_.fail(key, message); }
    bool flag(const std::string& key, bool otherwise) { return has(key) ? config_.boolean(key) : otherwise; }

private:
    ConfigObject& config_;
};

/// Which layers the window holds in: as "layer_types" lists them, or as the family's code deals them out.
std::vector<bool> windowed_layers(ConfigSizes& from, const Model& model) {
    std::vector<bool> windowed;
    if (from.has("layer_types")) {
        for (const std::string& type : from.texts("layer_types")) {
            if (type != "sliding_attention" && type != "full_attention")
                from.fail("layer_types", "has " + in_quotes(type) +
                                             "; allowed are 'sliding_attention' and 'full_attention'");
            windowed.push_back(type == "sliding_attention");
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
    model.layers = from.layers("num_hidden_layers");
    AttentionShape& attention = model.attention;
    // The published files of Gemma 3 leave out what is as in configuration_gemma3.py.
    const bool gemma3 = model.family == "gemma3_text";
    model.vocabulary = gemma3 ? from.size("vocab_size", 262'208) : from.size("vocab_size");
    model.longest = from.size("max_position_embeddings", gemma3 ? 131'072 : 2048);
    attention.heads = gemma3 ? from.size("num_attention_heads", 8) : from.size("num_attention_heads");
    attention.kv_heads = from.size("num_key_value_heads", gemma3 ? 4 : attention.heads);
    attention.head_dim = from.size("head_dim", gemma3 ? 256 : model.hidden / attention.heads);
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
    experts.width = mixtral ? model.width : from.size("moe_intermediate_size");
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
        model.layers = from.layers("n_layer");
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
    if (attention.head_dim < 1) config.fail("", "has more heads than its hidden size");
}

}  // namespace

std::span<const std::string> model_families() {
    return known_families;
}

Model read_model(ConfigObject config, const std::string& name) {
    if (config.has("text_config")) return read_model(config.object("text_config"), name);
    Model model;
    model.name = name;
    const std::string family = config.text("model_type");
    const auto known = model_families();
    if (!contains(known, family))
        config.fail("model_type",
                    "is " + in_quotes(family) + ", a family that is not read" + suggestion(family, known));
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

}  // namespace overlap
