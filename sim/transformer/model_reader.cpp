#include <algorithm>

#include "sim/core/output_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/transformer/model.hpp"

namespace overlap {
namespace {

/// How a fact fills in a member.
template <class T>
struct WholeFact {
    const char* name;
    Whole& (*member)(T&);
};
template <class T>
struct FlagFact {
    const char* name;
    bool& (*member)(T&);
};

// clang-format off
const std::vector<WholeFact<LayerShape>> attention_sizes{
    {"heads", [](LayerShape& l) -> Whole& { return l.attention.heads; }}, {"kv_heads", [](LayerShape& l) -> Whole& { return l.attention.kv_heads; }},
    {"head_dim", [](LayerShape& l) -> Whole& { return l.attention.head_dim; }}, {"value_dim", [](LayerShape& l) -> Whole& { return l.attention.value_dim; }}};
const std::vector<WholeFact<LayerShape>> attention_counts{
    {"q_rank", [](LayerShape& l) -> Whole& { return l.attention.q_rank; }}, {"kv_rank", [](LayerShape& l) -> Whole& { return l.attention.kv_rank; }},
    {"rope_dim", [](LayerShape& l) -> Whole& { return l.attention.rope_dim; }}, {"window", [](LayerShape& l) -> Whole& { return l.attention.window; }},
    {"gate", [](LayerShape& l) -> Whole& { return l.attention.gate; }}, {"attention_other", [](LayerShape& l) -> Whole& { return l.attention.other; }},
    {"index_heads", [](LayerShape& l) -> Whole& { return l.attention.index_heads; }}, {"index_dim", [](LayerShape& l) -> Whole& { return l.attention.index_dim; }},
    {"index_tokens", [](LayerShape& l) -> Whole& { return l.attention.index_tokens; }}};
const std::vector<FlagFact<LayerShape>> attention_flags{
    {"causal", [](LayerShape& l) -> bool& { return l.attention.causal; }}, {"rotary", [](LayerShape& l) -> bool& { return l.attention.rotary; }},
    {"makes_keys", [](LayerShape& l) -> bool& { return l.attention.makes_keys; }}, {"makes_values", [](LayerShape& l) -> bool& { return l.attention.makes_values; }},
    {"qkv_bias", [](LayerShape& l) -> bool& { return l.attention.qkv_bias; }}, {"out_bias", [](LayerShape& l) -> bool& { return l.attention.out_bias; }}};
const std::vector<WholeFact<LayerShape>> scan_sizes{
    {"scan_columns", [](LayerShape& l) -> Whole& { return l.scan.columns; }}, {"scan_inner", [](LayerShape& l) -> Whole& { return l.scan.inner; }}};
const std::vector<WholeFact<LayerShape>> scan_counts{
    {"scan_channels", [](LayerShape& l) -> Whole& { return l.scan.channels; }}, {"scan_kernel", [](LayerShape& l) -> Whole& { return l.scan.kernel; }},
    {"scan_state", [](LayerShape& l) -> Whole& { return l.scan.state; }}, {"scan_other", [](LayerShape& l) -> Whole& { return l.scan.other; }},
    {"scan_chunk", [](LayerShape& l) -> Whole& { return l.scan.chunk; }}};
const std::vector<WholeFact<LayerShape>> experts_sizes{
    {"experts", [](LayerShape& l) -> Whole& { return l.experts.count; }}, {"chosen", [](LayerShape& l) -> Whole& { return l.experts.chosen; }},
    {"expert_width", [](LayerShape& l) -> Whole& { return l.experts.width; }}, {"expert_input", [](LayerShape& l) -> Whole& { return l.experts.input; }}};
const std::vector<WholeFact<LayerShape>> experts_counts{
    {"shared_width", [](LayerShape& l) -> Whole& { return l.experts.shared_width; }}, {"idle_experts", [](LayerShape& l) -> Whole& { return l.experts.idle; }}};
const std::vector<FlagFact<LayerShape>> experts_flags{
    {"router_bias", [](LayerShape& l) -> bool& { return l.experts.router_bias; }}, {"shared_gate", [](LayerShape& l) -> bool& { return l.experts.shared_gate; }},
    {"experts_bias", [](LayerShape& l) -> bool& { return l.experts_bias; }}};
const std::vector<WholeFact<LayerShape>> layer_counts{
    {"norms", [](LayerShape& l) -> Whole& { return l.norms; }}, {"other", [](LayerShape& l) -> Whole& { return l.other; }}};
const std::vector<FlagFact<LayerShape>> layer_flags{
    {"norms_behind", [](LayerShape& l) -> bool& { return l.norms_behind; }}, {"parallel", [](LayerShape& l) -> bool& { return l.parallel; }},
    {"mlp_bias", [](LayerShape& l) -> bool& { return l.mlp_bias; }}};
const std::vector<WholeFact<Model>> model_sizes{
    {"hidden", [](Model& m) -> Whole& { return m.hidden; }}, {"layers", [](Model& m) -> Whole& { return m.layers; }},
    {"vocabulary", [](Model& m) -> Whole& { return m.vocabulary; }}, {"longest", [](Model& m) -> Whole& { return m.longest; }},
    {"embedding_width", [](Model& m) -> Whole& { return m.embedding_width; }}};
const std::vector<WholeFact<Model>> model_counts{
    {"norm_terms", [](Model& m) -> Whole& { return m.norm_terms; }}, {"around", [](Model& m) -> Whole& { return m.around; }},
    {"learned_rows", [](Model& m) -> Whole& { return m.learned_rows; }}};
const std::vector<FlagFact<Model>> model_flags{
    {"gated", [](Model& m) -> bool& { return m.gated; }}, {"tied", [](Model& m) -> bool& { return m.tied; }},
    {"last_norm", [](Model& m) -> bool& { return m.last_norm; }}, {"head_bias", [](Model& m) -> bool& { return m.head_bias; }},
    {"encoder", [](Model& m) -> bool& { return m.encoder; }}, {"logits_capped", [](Model& m) -> bool& { return m.logits_capped; }}};
// clang-format on

template <class T>
void fill(Facts& facts, T& to, const std::vector<WholeFact<T>>& sizes,
          const std::vector<WholeFact<T>>& counts, const std::vector<FlagFact<T>>& flags) {
    for (const WholeFact<T>& one : sizes) one.member(to) = facts.size(one.name);
    for (const WholeFact<T>& one : counts) one.member(to) = facts.count(one.name);
    for (const FlagFact<T>& one : flags) one.member(to) = facts.flag(one.name);
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
        if (mlp == "experts" || mlp == "both")
            fill(facts_, layer, experts_sizes, experts_counts, experts_flags);
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
            fill(facts_, layer, attention_sizes, attention_counts, attention_flags);
        if (scans) fill(facts_, layer, scan_sizes, scan_counts, {});
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
    schema["anyOf"] = Json::array({{{"required", {"model_type"}}}});
    keys["model_type"] = {{"description", "Family; see configs/families.json."}, {"type", "string"}};
    for (const Json& part : families.table["text_parts"]) {
        keys[part.get<std::string>()] = {
            {"description", "Of a multimodal model: the keys of its language model, instead of those here."},
            {"type", "object"}};
        schema["anyOf"].push_back({{"required", {part}}});
    }
    for (const auto& group : families.table["keys"].items())
        for (const auto& key : group.value().items())
            if (key.key().find('.') == std::string::npos)
                keys[key.key()] = key_schema(group.key(), key.value().get<std::string>());
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
    for (const char* key : {"hidden_act", "activation_function"})
        keys[key] = {{"description", "Activation; does not change operators."}, {"type", "string"}};
    return schema;
}

}  // namespace overlap
