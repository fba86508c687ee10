#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/errors.hpp"
#include "sim/core/json.hpp"
#include "sim/core/kept_errors.hpp"

namespace overlap {

/// Strict view of one JSON object: the reader asks for every allowed key, and `finish()` refuses all others.
/// Contract: the Json outlives the view. Every failure is a one-line UserError with file, JSON pointer, found
/// value, allowed values and the nearest valid name.
class ConfigObject {
public:
    ConfigObject(const Json& json, std::string file, std::string pointer = "");

    bool has(std::string_view key) const;
    double number(const std::string& key, Range range);
    std::int64_t integer(const std::string& key, std::int64_t low, std::int64_t high);
    /// The key "schema", which may be left out: a file of the `newest` version, the only one that is read.
    void version(int newest);
    std::string text(const std::string& key);
    bool boolean(const std::string& key);
    /// One of `names`; returns its index.
    std::size_t choice(const std::string& key, std::span<const std::string> names);
    /// A physical number with its origin: {"value": …, "source": "…"}; the source must not be empty. A fitted
    /// number also has a standard_error, and may have residual_pct, unit, file and date.
    double sourced(const std::string& key, Range range);
    /// Reads a value with a source that is one of `names`; returns its index.
    std::size_t sourced_choice(const std::string& key, std::span<const std::string> names);
    ConfigObject object(const std::string& key);
    std::vector<ConfigObject> objects(const std::string& key);
    std::vector<std::int64_t> integers(const std::string& key, std::int64_t low, std::int64_t high);
    std::vector<double> numbers(const std::string& key, Range range);
    std::vector<std::string> texts(const std::string& key);
    /// The raw value of `key`, for free-form parts (parameters, provenance).
    const Json& raw(const std::string& key);
    std::vector<std::string> keys() const;

    /// Merges the object members of `other` into this view at any depth; errors name the file of each member.
    /// A value that both have is an error when it is asked for.
    void overlay(ConfigObject other);

    /// Throws UserError if the object has a key that was not asked for.
    void finish() const;
    /// Keeps an error for each such key.
    void finish(KeptErrors& errors) const;
    /// Throws a UserError at `key` (or at the object itself when empty): "<file>: <pointer>: <message>".
    [[noreturn]] void fail(const std::string& key, const std::string& message) const;

    const std::string& file() const { return file_; }

private:
    const Json& at(const std::string& key);
    bool overlaid(std::string_view key) const { return !over_.empty() && over_.front().has(key); }
    void require_source(ConfigObject& parameter) const;
    /// Keys of `object`, this one or the one laid over it, that were not asked for.
    std::vector<std::string> unknown_keys(const ConfigObject& object) const;
    double checked(const Json& value, const std::string& key, Range range) const;
    std::int64_t checked_integer(const Json& value, const std::string& key, std::int64_t low,
                                 std::int64_t high) const;
    const Json& array(const std::string& key);

    const Json* json_;
    std::string file_;
    std::string pointer_;
    std::vector<std::string> asked_;            ///< keys that were read
    mutable std::vector<std::string> allowed_;  ///< and those that might have been, each once
    std::vector<ConfigObject> over_;            ///< none or one
};

/// Throws UserError if parsing this many bytes of JSON takes more memory than there is.
void require_memory_to_parse(const std::filesystem::path& path, double bytes);

/// Reads and parses a JSON file; a missing file, a directory, a duplicate key or broken JSON is a UserError.
Json read_json_file(const std::filesystem::path& path);
/// Parses JSON text; `origin` names it in errors.
Json parse_json(std::string_view text, const std::string& origin);

}  // namespace overlap
