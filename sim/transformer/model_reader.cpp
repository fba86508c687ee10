#include <algorithm>

#include "sim/core/output_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/transformer/model.hpp"

namespace overlap {
namespace {

/// Each layer is read by itself; models have at most a few hundred.
constexpr std::int64_t most_layers = 10'000;

/// A fact that fills in a member of T.
template <class T, class Member>
struct Fact {
    const char* name;
    Member T::*member;
};
template <class T>
using Sizes = std::vector<Fact<T, Whole>>;  // a fact that must be there, or that may be left out
template <class T>
using Flags = std::vector<Fact<T, bool>>;

const Sizes<AttentionShape> attention_sizes{{"heads", &AttentionShape::heads},
                                            {"kv_heads", &AttentionShape::kv_heads},
                                            {"head_dim", &AttentionShape::head_dim},
                                            {"value_dim", &AttentionShape::value_dim}};
const Sizes<AttentionShape> attention_counts{{"q_rank", &AttentionShape::q_rank},
                                             {"kv_rank", &AttentionShape::kv_rank},
                                             {"rope_dim", &AttentionShape::rope_dim},
                                             {"window", &AttentionShape::window},
                                             {"gate", &AttentionShape::gate},
                                             {"attention_other", &AttentionShape::other},
                                             {"index_heads", &AttentionShape::index_heads},
                                             {"index_dim", &AttentionShape::index_dim},
                                             {"index_tokens", &AttentionShape::index_tokens}};
const Flags<AttentionShape> attention_flags{
    {"causal", &AttentionShape::causal},         {"rotary", &AttentionShape::rotary},
    {"makes_keys", &AttentionShape::makes_keys}, {"makes_values", &AttentionShape::makes_values},
    {"qkv_bias", &AttentionShape::qkv_bias},     {"out_bias", &AttentionShape::out_bias}};
const Sizes<ScanShape> scan_sizes{{"scan_columns", &ScanShape::columns}, {"scan_inner", &ScanShape::inner}};
const Sizes<ScanShape> scan_counts{{"scan_channels", &ScanShape::channels},
                                   {"scan_kernel", &ScanShape::kernel},
                                   {"scan_state", &ScanShape::state},
                                   {"scan_other", &ScanShape::other},
                                   {"scan_chunk", &ScanShape::chunk}};
const Sizes<ExpertsShape> experts_sizes{{"experts", &ExpertsShape::count},
                                        {"chosen", &ExpertsShape::chosen},
                                        {"expert_width", &ExpertsShape::width},
                                        {"expert_input", &ExpertsShape::input}};
const Sizes<ExpertsShape> experts_counts{{"shared_width", &ExpertsShape::shared_width},
                                         {"idle_experts", &ExpertsShape::idle}};
const Flags<ExpertsShape> experts_flags{{"router_bias", &ExpertsShape::router_bias},
                                        {"shared_gate", &ExpertsShape::shared_gate}};
const Sizes<LayerShape> layer_counts{{"norms", &LayerShape::norms}, {"other", &LayerShape::other}};
const Flags<LayerShape> layer_flags{{"norms_behind", &LayerShape::norms_behind},
                                    {"parallel", &LayerShape::parallel},
                                    {"mlp_bias", &LayerShape::mlp_bias}};
const Sizes<Model> model_sizes{{"hidden", &Model::hidden},
                               {"layers", &Model::layers},
                               {"vocabulary", &Model::vocabulary},
                               {"longest", &Model::longest},
                               {"embedding_width", &Model::embedding_width}};
const Sizes<Model> model_counts{
    {"norm_terms", &Model::norm_terms}, {"around", &Model::around}, {"learned_rows", &Model::learned_rows}};
const Flags<Model> model_flags{{"gated", &Model::gated},         {"tied", &Model::tied},
                               {"last_norm", &Model::last_norm}, {"head_bias", &Model::head_bias},
                               {"encoder", &Model::encoder},     {"logits_capped", &Model::logits_capped}};
const Flags<LayerShape> experts_layer_flags{{"experts_bias", &LayerShape::experts_bias}};

template <class T>
void fill(Facts& facts, T& to, const Sizes<T>& sizes, const Sizes<T>& counts, const Flags<T>& flags) {
    for (const auto& [name, member] : sizes) to.*member = facts.size(name);
    for (const auto& [name, member] : counts) to.*member = facts.count(name);
    for (const auto& [name, member] : flags) to.*member = facts.flag(name);
}

/// Reads the layers of one config.
class LayerReader {
public:
    LayerReader(Facts& facts, const Families& families, Unread unread)
        : facts_(facts), types_(families.table["layer_types"]), unread_(unread) {}

    /// Throws UserError for sizes that do not go together.
    LayerShape read() {
        LayerShape layer;
        read_mixer(layer);
        const std::string mlp = facts_.word("mlp");
        if (mlp == "dense" || mlp == "both") layer.width = facts_.count("width");
        if (mlp == "experts" || mlp == "both") {
            fill(facts_, layer.experts, experts_sizes, experts_counts, experts_flags);
            fill(facts_, layer, {}, {}, experts_layer_flags);
        }
        fill(facts_, layer, {}, layer_counts, layer_flags);
        require_sense(layer);
        return layer;
    }

private:
    void read_mixer(LayerShape& layer) {
        const std::string kind = facts_.word("kind");
        const std::string mixer = types_.contains(kind) ? types_[kind].get<std::string>() : "";
        const bool scans = mixer == "scan" || mixer == "both";
        if (mixer.empty() || (scans && facts_.count("scan_columns") == 0)) {
            if (unread_ == Unread::refused)
                facts_.fail("kind", "has " + in_quotes(kind) + "; allowed are " + joined(kinds_read()) +
                                        " (--known-part reads the model without the others)");
            layer.unread = kind;
            return;
        }
        if (mixer == "attention" || mixer == "both")
            fill(facts_, layer.attention, attention_sizes, attention_counts, attention_flags);
        if (scans) fill(facts_, layer.scan, scan_sizes, scan_counts, {});
    }

    std::vector<std::string> kinds_read() {
        std::vector<std::string> kinds;
        const bool scans = facts_.count("scan_columns") > 0;
        for (const auto& type : types_.items())
            if (scans || type.value() == "attention") kinds.push_back(in_quotes(type.key()));
        return kinds;
    }

    void require_sense(const LayerShape& layer) {
        const AttentionShape& attention = layer.attention;
        const auto text = [](Whole number) { return std::to_string(std::int64_t{number}); };
        if (attention.heads > 0 && attention.heads % attention.kv_heads != 0)
            facts_.fail("kv_heads", "is " + text(attention.kv_heads) + ", which does not divide the " +
                                        text(attention.heads) + " heads");
        if (attention.rope_dim > attention.head_dim)
            facts_.fail("rope_dim", "is more than the " + text(attention.head_dim) + " numbers of a head");
        if (layer.experts.chosen > layer.experts.count + layer.experts.idle)
            facts_.fail("chosen", "is " + text(layer.experts.chosen) + ", more than the " +
                                      text(layer.experts.count) + " experts");
    }

    Facts& facts_;
    const Json& types_;
    Unread unread_;
};

/// Layers that are alike share a shape.
void read_layers(Facts& facts, const Families& families, Unread unread, Model& model) {
    LayerReader reader(facts, families, unread);
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        facts.at_layer(layer);
        const LayerShape shape = reader.read();
        const std::size_t place = place_of(model.shapes, shape);
        if (place == model.shapes.size()) model.shapes.push_back(shape);
        model.shape_of.push_back(place);
        if (!facts.differs_by_layer()) return;
    }
}

std::string layers_text(std::int64_t count, const Model& model) {
    return std::to_string(count) + " of " + std::to_string(std::int64_t{model.layers});
}

/// What of the file is not read, and what was taken for what it leaves out.
void add_notes(Facts& facts, const ConfigObject& config, const Families& families, Model& model) {
    const std::string type = config.has("model_type") ? ConfigObject(config).text("model_type") : "";
    if (!facts.known()) {
        model.notes.push_back("model_type " + in_quotes(type) + " is not known: read like " +
                              in_quotes(facts.family()) + ", by its keys");
        if (const std::vector<std::string> keys = facts.unknown_keys(); !keys.empty())
            model.notes.push_back("keys that are not known, and may change its layers: " + joined(keys));
    }
    for (const Json& part : families.table["left_out"])
        if (facts.value(part["when"].get<std::string>()) == true)
            model.notes.push_back(part["what"].get<std::string>());
    for (const LayerKind& kind : layer_kinds(model))
        if (!kind.shape.unread.empty())
            model.notes.push_back(kind.shape.unread + " layers: " + layers_text(kind.count, model) +
                                  " are not read; only their norms and MLPs count");
    if (const auto& sizes = facts.taken_by_default(); !sizes.empty())
        model.notes.push_back("the config leaves out, so as its family has by default: " +
                              joined(std::vector<std::string>(sizes.begin(), sizes.end())));
}

Model read_part(ConfigObject& config, ConfigObject* around, const std::string& name, const Families& families,
                Unread unread) {
    Facts facts(config, around, families);
    Model model;
    model.name = name;
    model.family = config.has("model_type") ? config.text("model_type") : facts.family();
    fill(facts, model, model_sizes, model_counts, model_flags);
    if (model.layers > most_layers)
        facts.fail("layers", "gives " + std::to_string(std::int64_t{model.layers}) +
                                 " layers, expected at most " + std::to_string(most_layers));
    if (config.has("layer_types") &&
        config.raw("layer_types").size() < static_cast<std::size_t>(model.layers))
        config.fail("layer_types", "has " + std::to_string(config.raw("layer_types").size()) +
                                       " layers, the model " + std::to_string(std::int64_t{model.layers}));
    read_layers(facts, families, unread, model);
    add_notes(facts, config, families, model);
    model.stored = read_weight_format(config, model.notes);
    try {
        parameters(model);
    } catch (const UserError& error) {
        config.fail("", std::string("has sizes of which no model is made: ") + error.what());
    }
    return model;
}

/// The schema of a key of a group of "keys" of configs/families.json.
Json key_schema(const std::string& group, const std::string& doc) {
    if (group == "flags") return flag_schema(doc);
    if (group == "words") return text_schema(doc, 1);
    if (group == "lists") return {{"description", doc}, {"type", {"array", "string"}}};
    if (group == "numbers") return number_from(0, doc);
    Json schema = whole_from(group == "sizes" ? 1 : 0, doc);
    schema["maximum"] = largest_size;
    return group == "sizes" ? schema : or_null(schema);
}

}  // namespace

Model read_model(ConfigObject config, const std::string& name, const Families& families, Unread unread) {
    for (const Json& part : families.table["text_parts"]) {
        const auto key = part.get<std::string>();
        if (!config.has(key) || !config.raw(key).is_object()) continue;
        ConfigObject text = config.object(key);
        Model model = text.has("text_config") ? read_model(text, name, families, unread)
                                              : read_part(text, &config, name, families, unread);
        std::string others;
        for (const std::string& other : config.keys())
            if (other != key && other.ends_with("_config") && other != "quantization_config" &&
                config.raw(other).is_object())
                others += ", not " + other;
        if (!model.stored.is_set()) model.stored = read_weight_format(config, model.notes);
        model.notes.insert(model.notes.begin(), "read: " + key + others);
        return model;
    }
    return read_part(config, nullptr, name, families, unread);
}

Json model_schema(const Families& families) {
    Json schema = named_file_schema(
        "Model",
        "A transformer, for sim model: keys of its Hugging Face config.json that operators depend on.");
    Json& keys = schema["properties"];
    keys["description"] = text_schema("The model in a sentence.", 1);
    keys["source"] = text_schema("The published config.json.", 1);
    schema["required"].push_back("source");
    keys["model_type"] = {
        {"description", "Family; see configs/families.json. Where it is missing, the other keys tell."},
        {"type", "string"}};
    for (const Json& part : families.table["text_parts"]) {
        keys[part.get<std::string>()] = {
            {"description", "Of a multimodal model: the keys of its language model, instead of those here."},
            {"type", "object"}};
    }
    for (const auto& group : families.table["keys"].items())
        for (const auto& key : group.value().items())
            if (key.key().find('.') == std::string::npos)
                keys[key.key()] = key_schema(group.key(), key.value().get<std::string>());
    keys["num_hidden_layers"]["maximum"] = most_layers;
    for (const auto& key : families.table["aliases"].items())
        for (const Json& alias : key.value()) {
            const auto name = alias.get<std::string>();
            const std::size_t dot = name.find('.');
            if (dot != std::string::npos)
                keys[name.substr(0, dot)] = {{"description", "Some of the keys."}, {"type", "object"}};
            if (dot != std::string::npos || keys.contains(name)) continue;
            keys[name] = keys[key.key()];
            keys[name]["description"] = "The same as " + key.key() + ".";
        }
    keys["quantization_config"] = {{"description", "How weights are stored, as quantisers write it."},
                                   {"type", "object"}};
    for (const char* key : {"hidden_act", "activation_function"})
        keys[key] = {{"description", "Activation; does not change operators."}, {"type", "string"}};
    return schema;
}

}  // namespace overlap
