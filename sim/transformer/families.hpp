#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/whole.hpp"

namespace overlap {

/// configs/families.json: which keys of a config.json say what of a model's structure, by its "model_type".
struct Families {
    Json table;
};
/// Throws UserError for a table that has a mistake.
Families read_families(const std::filesystem::path& file);

/// The largest that a size of a model may be.
inline constexpr std::int64_t largest_size = 100'000'000;

/// The names of the families that are read.
std::vector<std::string> names_of(const Families& families);

/// What one config says of its model: the facts of its family's formulas, such as "heads" or "window". A fact may
/// differ from layer to layer. Errors name the config's key that a fact comes from.
class Facts {
public:
    /// `around`: the config that `config` is a part of, whose keys count where `config` has none; else null.
    Facts(ConfigObject& config, ConfigObject* around, const Families& families);

    /// The family whose formulas hold; another one than "model_type" names where that is not known.
    const std::string& family() const { return family_; }
    bool known() const { return known_; }

    void at_layer(std::int64_t layer);
    /// Whether any fact that was asked for differs, or may, from layer to layer.
    bool differs_by_layer() const { return differs_; }

    /// A size, at least 1.
    Whole size(const std::string& fact);
    /// A number that may be 0, and is where the config and its family say nothing.
    Whole count(const std::string& fact);
    bool flag(const std::string& fact);
    std::string word(const std::string& fact);
    /// Throws UserError at the key that the fact came from last.
    [[noreturn]] void fail(const std::string& fact, const std::string& message);

    Json value(const std::string& formula);
    /// Sizes that the config leaves out, with the values of the family's class: "hidden_size 4096".
    const std::set<std::string>& taken_by_default() const { return by_default_; }
    /// Keys that may say something of the structure, and that no family knows.
    std::vector<std::string> unknown_keys();

private:
    struct Known {
        Json value;
        bool by_layer = false;
        std::string key;  ///< of the config, which the value came from
    };
    const Known& fact(const std::string& name);
    const Json* formula_of(const std::string& fact) const;
    Json named(const std::string& name, const std::string& within);
    Json key_value(const std::string& key);
    Json checked(ConfigObject& from, const std::string& key, const std::string& group);
    const Json* default_of(const std::string& key) const;
    Whole whole(const std::string& fact, std::int64_t least);
    void choose_family();

    ConfigObject& config_;
    ConfigObject* around_;
    const Json& table_;
    std::string family_;
    bool known_ = true;
    std::vector<const Json*> chain_;  ///< the family, and those that it is like
    std::int64_t layer_ = 0;
    std::map<std::string, Known> facts_;
    std::set<std::string> by_default_;
    std::string key_;        ///< that told what is being evaluated
    bool by_layer_ = false;  ///< whether what is being evaluated depends on the layer
    bool differs_ = false;
};

}  // namespace overlap
