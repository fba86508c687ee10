#include "sim/transformer/weight_format.hpp"

#include <algorithm>
#include <array>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

constexpr double scale32 = 32, scale16 = 16, scale8 = 8;  // bits of a scale
// Scales: fp8 by block has one of 32 bits for 128 x 128 weights (DeepSeek-V3, arXiv 2412.19437, 3.3.2); MX formats
// one of 8 bits for 32 (OCP Microscaling Formats 1.0, table 1); NVFP4 one of 8 bits for 16 (NVIDIA, arXiv 2509.25149,
// section 2); int4 by AWQ and GPTQ one of 16 bits and a zero of 4 for 128; NF4 with doubly quantised scales 0.127
// (arXiv 2305.14314, section 3).
const std::array<WeightFormat, 8> formats{{{"fp8_block", 8 + scale32 / (128 * 128), DType::fp8},
                                           {"fp8_tensor", 8, DType::fp8},
                                           {"mxfp8", 8 + scale8 / 32, DType::fp8},
                                           {"mxfp4", 4 + scale8 / 32, DType::fp4},
                                           {"nvfp4", 4 + scale8 / 16, DType::fp4},
                                           {"int8_weights", 8 + scale16 / 128, DType::bf16},
                                           {"int4_weights", 4 + (scale16 + 4) / 128, DType::bf16},
                                           {"nf4", 4.127, DType::bf16}}};

/// A value that a config may have at any depth of `parts`; null where it has none.
Json value_in(const Json& json, const std::vector<const char*>& parts) {
    const Json* at = &json;
    for (const char* part : parts) {
        if (!at->is_object() || !at->contains(part)) return {};
        at = &(*at)[part];
    }
    return *at;
}

std::string text_in(const Json& json, const char* key) {
    const Json value = value_in(json, {key});
    return value.is_string() ? lower_case(value.get<std::string>()) : "";
}

/// The form of compressed-tensors and modelopt's newer files: "config_groups" has how each group of layers is stored.
std::string format_of_group(const Json& group) {
    const Json weights = value_in(group, {"weights"});
    const int bits = weights.value("num_bits", 0);
    const bool is_float = text_in(weights, "type") == "float";
    if (is_float && bits == 8) return text_in(weights, "strategy") == "block" ? "fp8_block" : "fp8_tensor";
    constexpr int mx_group = 32;
    if (is_float && bits == 4) return weights.value("group_size", 0) == mx_group ? "mxfp4" : "nvfp4";
    if (bits == 4) return "int4_weights";
    if (bits == 8) return value_in(group, {"input_activations"}).is_object() ? "int8" : "int8_weights";
    return "";
}

std::string format_of_groups(const Json& config) {
    const Json groups = value_in(config, {"config_groups"});
    return groups.is_object() && !groups.empty() ? format_of_group(groups.front()) : "";
}

/// The name of the format that a quantization_config has; empty where that is not known.
std::string name_of_format(const Json& config) {
    const std::string method = text_in(config, "quant_method"), algorithm = text_in(config, "quant_algo");
    const int bits = value_in(config, {"bits"}).is_number() ? config["bits"].get<int>() : 4;
    if (method == "fp8")
        return value_in(config, {"weight_block_size"}).is_array() ? "fp8_block" : "fp8_tensor";
    if (method == "fbgemm_fp8") return "fp8_tensor";
    if (method == "mxfp4" || method == "mxfp8") return method;
    if (method == "awq" || method == "gptq")
        return bits == 8 ? "int8_weights" : bits == 4 ? "int4_weights" : "";
    if (method == "bitsandbytes") return value_in(config, {"load_in_8bit"}) == true ? "int8_weights" : "nf4";
    if (algorithm.starts_with("nvfp4")) return "nvfp4";
    if (algorithm.starts_with("mxfp")) return algorithm;
    if (algorithm.starts_with("fp8")) return algorithm.starts_with("fp8_pb") ? "fp8_block" : "fp8_tensor";
    if (algorithm.starts_with("w4a16") || algorithm.starts_with("int4")) return "int4_weights";
    if (method == "quark") {
        const Json type = value_in(config, {"global_quant_config", "weight", "dtype"});
        if (type == "fp4") return "mxfp4";
        if (type.is_string() && type.get<std::string>().starts_with("fp8")) return "fp8_tensor";
    }
    return format_of_groups(config);
}

/// Whether attention is left in 16 bits, so that experts are all that is quantised.
bool leaves_attention(const Json& config) {
    for (const char* key :
         {"modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude"})
        for (const Json& module : value_in(config, {key}))
            if (module.is_string() && module.get<std::string>().find("self_attn") != std::string::npos)
                return true;
    return false;
}

}  // namespace

std::vector<std::string> weight_format_names() {
    return mapped(formats, &WeightFormat::name);
}

WeightFormat weight_format(const std::string& name) {
    if (name == "int8") return {name, 8, DType::int8};
    const auto found = std::ranges::find(formats, name, &WeightFormat::name);
    return found == formats.end() ? WeightFormat{} : *found;
}

WeightFormat read_weight_format(ConfigObject config, std::vector<std::string>& notes) {
    for (const char* key : {"quantization_config", "compression_config"}) {
        if (!config.has(key) || !config.raw(key).is_object()) continue;
        const Json& found = config.raw(key);
        WeightFormat format = weight_format(name_of_format(found));
        format.only_experts = format.is_set() && leaves_attention(found);
        if (!format.is_set())
            notes.push_back(std::string(key) + " of " + in_quotes(text_in(found, "quant_method")) +
                            " is not read: weights count as --dtype says");
        if (value_in(found, {"kv_cache_scheme"}).is_object() ||
            !text_in(found, "kv_cache_quant_algo").empty())
            format.fp8_caches = true;
        return format;
    }
    return {};
}

}  // namespace overlap
