#include <algorithm>
#include <array>

#include "sim/core/shown.hpp"
#include "sim/transformer/model.hpp"

namespace overlap {
namespace {

constexpr std::int64_t largest_size = 100'000'000;

const std::array<std::string, 16> known_families{
    "llama",       "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3",    "qwen3_moe", "deepseek_v2",
    "deepseek_v3", "gemma",   "phi",     "phi3",  "gpt2",      "gpt_neox", "falcon",    "bert"};

/// Reads keys that may be null, which Hugging Face's configs use for "none".
class ConfigSizes {
public:
    explicit ConfigSizes(ConfigObject& config) : config_(config) {}

    bool has(const std::string& key) { return config_.has(key) && !config_.raw(key).is_null(); }
    std::int64_t size(const std::string& key) { return config_.integer(key, 1, largest_size); }
    std::int64_t size(const std::string& key, std::int64_t otherwise) {
        return has(key) ? config_.integer(key, 0, largest_size) : otherwise;
    }
    [[noreturn]] void fail(const std::string& key, const std::string& message) { config_.fail(key, message); }
    bool flag(const std::string& key, bool otherwise) { return has(key) ? config_.boolean(key) : otherwise; }

private:
    ConfigObject& config_;
};

void read_common(ConfigSizes& from, Model& model) {
    model.hidden = from.size("hidden_size");
    model.layers = from.size("num_hidden_layers");
    model.vocabulary = from.size("vocab_size");
    model.longest = from.size("max_position_embeddings", 2048);
    AttentionShape& attention = model.attention;
    attention.heads = from.size("num_attention_heads");
    attention.kv_heads = from.size("num_key_value_heads", attention.heads);
    attention.head_dim = from.size("head_dim", model.hidden / attention.heads);
    if (from.flag("use_sliding_window", true)) attention.window = from.size("sliding_window", 0);
}

/// RMSNorm, a gated MLP, rotary positions; what Llama, Mistral, Qwen, Gemma, Phi-3 and mixtures of experts share.
void read_llama(ConfigSizes& from, Model& model) {
    read_common(from, model);
    model.width = from.size("intermediate_size");
    model.tied = from.flag("tie_word_embeddings", model.family == "gemma");
    AttentionShape& attention = model.attention;
    const bool biased = from.flag("attention_bias", false);
    attention.qkv_bias = biased || model.family.starts_with("qwen2");
    attention.out_bias = biased;
    attention.normalised = model.family.starts_with("qwen3");
    model.mlp_bias = from.flag("mlp_bias", false);
    // Qwen2's and Qwen3's files have a window that is off unless "use_sliding_window" says otherwise.
    if (model.family.starts_with("qwen") && !from.flag("use_sliding_window", false)) attention.window = 0;
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
    if (attention.heads % std::max<std::int64_t>(attention.kv_heads, 1) != 0)
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
    Model model;
    model.name = name;
    const std::string family = config.text("model_type");
    const auto known = model_families();
    if (std::find(known.begin(), known.end(), family) == known.end())
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
