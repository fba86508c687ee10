#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// A JSON file as read, or as changed by a what-if, with its name in errors.
struct ConfigFile {
    Json json;
    std::string name;
    /// If set, a what-if may change keys that the file leaves out, from their default.
    Json (*schema)() = nullptr;

    ConfigObject view() const { return {json, name}; }
    /// Errors say that the file is not as it is on the disk.
    void mark_changed() {
        if (!name.ends_with(" with what_if")) name += " with what_if";
    }
};
/// `kind` as for upgraded().
ConfigFile read_config_file(const std::filesystem::path& path, const std::string& kind);

/// Whether values of this key are whole numbers, to which a factor's result is rounded; none: no value is.
using IsCount = bool (*)(std::string_view key);

/// Changed values of a machine's files in one run: {"topology.fabric.0.bandwidth_GBps": "2x",
/// "device.dma.peer_engines": 4}. A key is a path of object keys and array indices, joined by dots. It ends
/// at a number, a text, true/false, or a {"value", "source"}, whose value then changes. The new value has the
/// kind of the old one, or is "2x": a factor of an old number. A key that a file leaves out has its default
/// before. Changes are applied before the files are read, so the same ranges hold.
class WhatIf {
public:
    WhatIf() = default;
    /// Contract: `changes` is a flat object whose keys begin with "topology." or "device."; errors place it
    /// at /what_if of `origin`. Throws UserError.
    WhatIf(const Json& changes, const std::string& origin);

    /// Makes the changes whose keys begin with `root`, each in the first of `files` that has its path. A
    /// changed file's name says so from then on. Throws UserError where none has it, with the nearest key.
    void change(const std::string& root, std::span<ConfigFile* const> files,
                IsCount is_count = nullptr) const;

    const Json& changes() const { return changes_; }

private:
    Json changes_ = Json::object();
    std::string origin_;
};

/// One change of a what-if: what the files say, and what a run uses instead.
struct ChangedValue {
    std::string key;  ///< "device.dma.engine_GBps"
    Json given;       ///< as in the what-if: 2, or "2x"
    Json before, after;
};

/// The changes of `what_if`, an object as WhatIf takes it and has accepted, whose keys begin with `root`.
/// `files` are as read, without it; keys that they leave out get their defaults.
std::vector<ChangedValue> changed_values(const Json& what_if, const std::string& root,
                                         std::span<ConfigFile* const> files, IsCount is_count = nullptr);

}  // namespace overlap
