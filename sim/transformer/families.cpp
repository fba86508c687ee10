#include "sim/transformer/families.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/formula.hpp"
#include "sim/core/output_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

/// The group of "keys" that has the key; empty if none has.
std::string group_of_key(const Json& table, const std::string& key) {
    for (const auto& [group, keys] : table["keys"].items())
        if (keys.contains(key)) return group;
    return "";
}

/// Names that are a part of a config that is another config: "attn_config.kv_n_heads".
std::pair<std::string, std::string> parts_of_key(const std::string& key) {
    const std::size_t dot = key.find('.');
    return dot == std::string::npos ? std::pair(key, std::string())
                                    : std::pair(key.substr(0, dot), key.substr(dot + 1));
}

/// "attn_config.kv_n_heads" as a part of a JSON pointer.
std::string pointer_of(std::string key) {
    std::ranges::replace(key, '.', '/');
    return key;
}

/// Whether a key of a config is one of the table's, by any of its names.
bool is_key(const Json& table, const std::string& key) {
    return !group_of_key(table, key).empty() || std::ranges::any_of(table["aliases"], [&](const Json& names) {
        return contains(names, Json(key));
    });
}

/// Whether the key says nothing of a model's structure, by the affixes of "harmless".
bool is_harmless(const Json& table, const std::string& key) {
    return std::ranges::any_of(table["harmless"], [&](const Json& part) {
        return key.find(part.get<std::string>()) != std::string::npos;
    });
}

}  // namespace

Families read_families(const std::filesystem::path& file) {
    Families families{read_json_file(file)};
    ConfigObject table(families.table, file.string());
    for (const char* text : {"description", "source"}) table.text(text);
    table.version(1);
    for (const char* part : {"text_parts", "by_keys", "left_out", "harmless"})
        if (!table.raw(part).is_array()) table.fail(part, "is no list");
    for (const char* part : {"keys", "aliases", "layer_types", "facts", "families"}) table.object(part);
    ConfigObject named = table.object("families");
    for (const std::string& name : named.keys()) {
        ConfigObject family = named.object(name);
        if (family.has("like") && !families.table["families"].contains(family.text("like")))
            family.fail("like", "is no family of this table");
        for (const char* part : {"defaults", "facts"})
            if (family.has(part)) family.object(part);
        family.finish();
    }
    table.finish();
    return families;
}

std::vector<std::string> names_of(const Families& families) {
    std::vector<std::string> names;
    for (const auto& item : families.table["families"].items()) names.push_back(item.key());
    return names;
}

Facts::Facts(ConfigObject& config, ConfigObject* around, const Families& families)
    : config_(config), around_(around), table_(families.table) {
    choose_family();
    const Json& named = table_["families"];
    for (std::string name = family_;;) {
        chain_.push_back(&named[name]);
        if (!named[name].contains("like")) break;
        name = named[name]["like"].get<std::string>();
    }
}

void Facts::choose_family() {
    const Json& named = table_["families"];
    const std::string type = config_.has("model_type") ? config_.text("model_type") : "";
    family_ = type;
    known_ = named.contains(type);
    if (known_) return;
    for (const Json& rule : table_["by_keys"]) {
        const bool fits = value(rule["when"].get<std::string>()) == true;
        if (!fits) continue;
        family_ = rule["like"].get<std::string>();
        return;
    }
    std::vector<std::string> names;
    for (const auto& item : named.items()) names.push_back(item.key());
    config_.fail("model_type",
                 (type.empty() ? "is missing" : "is " + in_quotes(type) + ", a family that is not read") +
                     suggestion(type, names) + ", and its keys are of no known structure");
}

void Facts::at_layer(std::int64_t layer) {
    layer_ = layer;
    std::erase_if(facts_, [](const auto& item) { return item.second.by_layer; });
}

const Json* Facts::formula_of(const std::string& fact) const {
    for (const Json* family : chain_)
        if (family->contains("facts") && (*family)["facts"].contains(fact)) return &(*family)["facts"][fact];
    const auto found = table_["facts"].find(fact);
    return found == table_["facts"].end() ? nullptr : &*found;
}

/// The default of the family, or where it has none of its own, of the family that it is like.
const Json* Facts::default_of(const std::string& key) const {
    if (!known_) return nullptr;
    for (const Json* family : chain_) {
        const auto defaults = family->find("defaults");
        if (defaults == family->end()) continue;
        const auto found = defaults->find(key);
        return found == defaults->end() ? nullptr : &*found;
    }
    return nullptr;
}

const Facts::Known& Facts::fact(const std::string& name) {
    if (const auto found = facts_.find(name); found != facts_.end()) return found->second;
    const bool before = by_layer_;
    by_layer_ = false;
    key_.clear();
    Known known;
    const Json& formula = *formula_of(name);
    known.value = formula.is_string()
                      ? Formula(formula.get<std::string>()).value([&](const std::string& other) {
                            return named(other, name);
                        })
                      : formula;
    known.by_layer = by_layer_;
    known.key = key_;
    differs_ = differs_ || by_layer_;
    by_layer_ = before || by_layer_;
    return facts_.insert_or_assign(name, known).first->second;
}

/// A fact, but where the fact `within` is told by a key of its own name, the key.
Json Facts::named(const std::string& name, const std::string& within) {
    if (name == "layer") {
        by_layer_ = true;
        return layer_;
    }
    if (name == within || formula_of(name) == nullptr) return key_value(name);
    const Known& known = fact(name);
    by_layer_ = by_layer_ || known.by_layer;
    key_ = known.key;
    return known.value;
}

/// The value of a key by any of its names; null where neither the config nor the family has one. Errors of a fact
/// name the key that told it; where none did, the first that could have.
Json Facts::key_value(const std::string& key) {
    const std::string group = group_of_key(table_, key);
    std::vector<std::string> names{key};
    if (const auto others = table_["aliases"].find(key); others != table_["aliases"].end())
        for (const Json& other : *others) names.push_back(other.get<std::string>());
    if (key_.empty()) key_ = key;
    bool is_null = false;  // which stands for "none", and not for what is left out
    for (ConfigObject* config : {&config_, around_})
        for (const std::string& name : names) {
            if (config == nullptr) continue;
            const auto [part, rest] = parts_of_key(name);
            if (!config->has(part)) continue;
            if (!rest.empty() && !config->raw(part).is_object()) continue;
            ConfigObject from = rest.empty() ? *config : config->object(part);
            if (!rest.empty() && !from.has(rest)) continue;
            Json found = checked(from, rest.empty() ? name : rest, group);
            if (found.is_null()) {
                is_null = true;
                continue;
            }
            key_ = name;
            return found;
        }
    const Json* otherwise = is_null ? nullptr : default_of(key);
    if (otherwise == nullptr) return nullptr;
    key_ = key;
    if (group == "sizes") by_default_.insert(key + " " + otherwise->dump());
    return *otherwise;
}

/// The value of a key that `from` has, which keeps to the key's kind. Of a list of sizes that of this layer.
Json Facts::checked(ConfigObject& from, const std::string& key, const std::string& group) {
    const Json& value = from.raw(key);
    if (value.is_null() || value == "auto") return nullptr;
    if (group == "lists") {
        if (!value.is_array() && !value.is_string())
            from.fail(key, "is " + shown(value) + ", expected a list");
        if (value.is_array()) return value;
        Json letters = Json::array();  // of Nemotron-H's "M-M*-"
        for (const char letter : value.get<std::string>()) letters.push_back(std::string(1, letter));
        return letters;
    }
    if (group == "words") return from.text(key);
    if (group == "flags") return from.boolean(key);
    if (value.is_array() && group != "numbers") {
        const std::vector<std::int64_t> all = from.integers(key, 0, largest_size);
        by_layer_ = true;
        return static_cast<std::size_t>(layer_) < all.size() ? Json(all[static_cast<std::size_t>(layer_)])
                                                             : Json();
    }
    if (group == "numbers") return from.number(key, non_negative);
    return from.integer(key, group == "sizes" ? 1 : 0, largest_size);
}

Json Facts::value(const std::string& formula) {
    return Formula(formula).value([&](const std::string& name) { return named(name, ""); });
}

void Facts::fail(const std::string& name, const std::string& message) {
    config_.fail(pointer_of(fact(name).key), message);
}

Whole Facts::whole(const std::string& name, std::int64_t least) {
    const Known& known = fact(name);
    if (known.value.is_null()) {
        if (least == 0) return 0;
        if (known.key.find('.') == std::string::npos)
            config_.integer(known.key, least, largest_size);  // says what is missing
        fail(name, "does not say " + in_quotes(name));
    }
    if (known.value.is_boolean()) return Whole(std::int64_t{known.value.get<bool>()});
    if (known.value.is_number_integer() && known.value.get<std::int64_t>() >= least)
        return Whole(known.value.get<std::int64_t>());
    fail(name, "makes " + in_quotes(name) + " " + known.value.dump() + ", expected a whole number from " +
                   std::to_string(least));
}

Whole Facts::size(const std::string& name) {
    return whole(name, 1);
}

Whole Facts::count(const std::string& name) {
    return whole(name, 0);
}

bool Facts::flag(const std::string& name) {
    return whole(name, 0) != 0;
}

std::string Facts::word(const std::string& name) {
    const Known& known = fact(name);
    if (!known.value.is_string()) fail(name, "does not say " + in_quotes(name));
    return known.value.get<std::string>();
}

std::vector<std::string> Facts::unknown_keys() {
    std::vector<std::string> unknown;
    for (const std::string& key : config_.keys()) {
        const Json& value = config_.raw(key);
        const bool says_size =
            (value.is_number_integer() && value > 1) || value == true || value.is_structured();
        if (says_size && !is_key(table_, key) && !is_harmless(table_, key)) unknown.push_back(key);
    }
    return unknown;
}

}  // namespace overlap
