#include "sim/core/config_reader.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include "sim/core/archive.hpp"
#include "sim/core/available_memory.hpp"
#include "sim/core/input_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

std::string digits(double value) {
    std::ostringstream out;
    out << value;
    return out.str();
}

std::string allowed(Range range) {
    const bool open = range.high == std::numeric_limits<double>::max();
    if (range.low == std::numeric_limits<double>::min() && open) return "a number > 0";
    if (open) return "a number >= " + digits(range.low);
    return "a number from " + digits(range.low) + " to " + digits(range.high);
}

/// A key as part of a pointer; long user keys are cut.
std::string key_text(const std::string& key) {
    const std::string quoted = in_quotes(key, 200);
    return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

ConfigObject::ConfigObject(const Json& json, std::string file, std::string pointer)
    : json_(&json), file_(std::move(file)), pointer_(std::move(pointer)) {
    if (!json.is_object()) fail("", "is " + shown(json) + ", expected an object");
}

bool ConfigObject::has(std::string_view key) const {
    if (!contains(allowed_, key)) allowed_.emplace_back(key);
    return json_->contains(key) || overlaid(key);
}

const Json& ConfigObject::at(const std::string& key) {
    asked_.push_back(key);
    has(key);
    const auto found = json_->find(key);
    if (found == json_->end()) {
        const std::vector<std::string> present = keys();
        const std::string near = nearest_name(key, present);
        fail(key, "is missing" + (near.empty() ? "" : " (found " + in_quotes(near, 200) + ")"));
    }
    return *found;
}

double ConfigObject::checked(const Json& value, const std::string& key, Range range) const {
    if (!value.is_number()) fail(key, "is " + shown(value) + ", expected " + allowed(range));
    const double number = value.get<double>();
    if (!std::isfinite(number) || number < range.low || number > range.high)
        fail(key, "is " + shown(value) + ", expected " + allowed(range));
    return number;
}

double ConfigObject::number(const std::string& key, Range range) {
    return checked(at(key), key, range);
}

std::int64_t ConfigObject::checked_integer(const Json& value, const std::string& key, std::int64_t low,
                                           std::int64_t high) const {
    const std::string expected = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
    if (!value.is_number_integer()) fail(key, "is " + shown(value) + ", expected " + expected);
    if (value.is_number_unsigned() &&
        value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        fail(key, "is " + shown(value) + ", expected " + expected);
    const auto number = value.get<std::int64_t>();
    if (number < low || number > high) fail(key, "is " + shown(value) + ", expected " + expected);
    return number;
}

void ConfigObject::version(int newest) {
    if (has("schema"))
        integer("schema", newest, newest);
    else
        allowed_.emplace_back("schema");
}

std::int64_t ConfigObject::integer(const std::string& key, std::int64_t low, std::int64_t high) {
    return checked_integer(at(key), key, low, high);
}

std::string ConfigObject::text(const std::string& key) {
    const Json& value = at(key);
    if (!value.is_string()) fail(key, "is " + shown(value) + ", expected text");
    return value.get<std::string>();
}

bool ConfigObject::boolean(const std::string& key) {
    const Json& value = at(key);
    if (!value.is_boolean()) fail(key, "is " + shown(value) + ", expected true or false");
    return value.get<bool>();
}

std::size_t ConfigObject::choice(const std::string& key, std::span<const std::string> names) {
    const std::string word = text(key);
    const auto found = std::ranges::find(names, word);
    if (found == names.end()) fail(key, "is " + in_quotes(word) + suggestion(word, names));
    return static_cast<std::size_t>(found - names.begin());
}

double ConfigObject::sourced(const std::string& key, Range range) {
    ConfigObject parameter = object(key);
    const double value = parameter.number("value", range);
    require_source(parameter);
    return value;
}

std::size_t ConfigObject::sourced_choice(const std::string& key, std::span<const std::string> names) {
    ConfigObject parameter = object(key);
    const std::size_t value = parameter.choice("value", names);
    require_source(parameter);
    return value;
}

void ConfigObject::require_source(ConfigObject& parameter) const {
    if (parameter.has("standard_error")) {
        parameter.number("standard_error", non_negative);
        if (parameter.has("residual_pct")) parameter.number("residual_pct", non_negative);
        for (const std::string text : {"unit", "file", "date"})
            if (parameter.has(text)) parameter.text(text);
    }
    if (parameter.text("source").empty())
        parameter.fail("source", "is empty, expected the source of the value");
    parameter.finish();
}

ConfigObject ConfigObject::object(const std::string& key) {
    if (!overlaid(key)) return {at(key), file_, pointer_ + "/" + key};
    asked_.push_back(key);
    has(key);
    ConfigObject over = over_.front().object(key);
    if (!json_->contains(key)) return over;
    ConfigObject both(at(key), file_, pointer_ + "/" + key);
    both.overlay(std::move(over));
    return both;
}

void ConfigObject::overlay(ConfigObject other) {
    if (json_->contains("value") && other.json_->contains("value"))
        other.fail("", "is in " + file_ + ", too, expected in one of them");
    over_.assign(1, std::move(other));
}

const Json& ConfigObject::array(const std::string& key) {
    const Json& value = at(key);
    if (!value.is_array()) fail(key, "is " + shown(value) + ", expected an array");
    return value;
}

std::vector<ConfigObject> ConfigObject::objects(const std::string& key) {
    const Json& values = array(key);
    std::vector<ConfigObject> result;
    for (std::size_t i = 0; i < values.size(); ++i)
        result.emplace_back(values[i], file_, pointer_ + "/" + key + "/" + std::to_string(i));
    return result;
}

std::vector<std::int64_t> ConfigObject::integers(const std::string& key, std::int64_t low,
                                                 std::int64_t high) {
    const Json& values = array(key);
    std::vector<std::int64_t> result;
    for (std::size_t i = 0; i < values.size(); ++i)
        result.push_back(checked_integer(values[i], key + "/" + std::to_string(i), low, high));
    return result;
}

std::vector<double> ConfigObject::numbers(const std::string& key, Range range) {
    const Json& values = array(key);
    std::vector<double> result;
    for (std::size_t i = 0; i < values.size(); ++i)
        result.push_back(checked(values[i], key + "/" + std::to_string(i), range));
    return result;
}

std::vector<std::string> ConfigObject::texts(const std::string& key) {
    const Json& values = array(key);
    std::vector<std::string> result;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!values[i].is_string())
            fail(key + "/" + std::to_string(i), "is " + shown(values[i]) + ", expected text");
        result.push_back(values[i].get<std::string>());
    }
    return result;
}

const Json& ConfigObject::raw(const std::string& key) {
    return at(key);
}

std::vector<std::string> ConfigObject::keys() const {
    std::vector<std::string> result;
    for (const auto& item : json_->items()) result.push_back(item.key());
    if (!over_.empty())
        for (const auto& item : over_.front().json_->items())
            if (!json_->contains(item.key())) result.push_back(item.key());
    return result;
}

std::vector<std::string> ConfigObject::unknown_keys(const ConfigObject& object) const {
    const auto& more = object.asked_;
    std::vector<std::string> unknown;
    for (const auto& item : object.json_->items())
        if (!contains(asked_, item.key()) && !contains(more, item.key())) unknown.push_back(item.key());
    return unknown;
}

void ConfigObject::finish(KeptErrors& errors) const {
    const auto refuse_unknown = [&](const ConfigObject& object) {
        for (const std::string& key : unknown_keys(object))
            errors.keep([&] { object.fail(key, "is an unknown key" + suggestion(key, allowed_)); });
    };
    refuse_unknown(*this);
    if (!over_.empty()) refuse_unknown(over_.front());
}

void ConfigObject::finish() const {
    const auto refuse_unknown = [this](const ConfigObject& object) {
        const std::vector<std::string> unknown = unknown_keys(object);
        if (unknown.empty()) return;
        constexpr std::size_t most_shown = 8;
        std::string others;
        for (std::size_t i = 1; i < std::min(unknown.size(), most_shown); ++i)
            others += (i == 1 ? "; so is '" : ", '") + unknown[i] + "'";
        if (unknown.size() > most_shown)
            others += " and " + std::to_string(unknown.size() - most_shown) + " more";
        object.fail(unknown.front(), "is an unknown key" + suggestion(unknown.front(), allowed_) + others);
    };
    refuse_unknown(*this);
    if (!over_.empty()) refuse_unknown(over_.front());
}

void ConfigObject::fail(const std::string& key, const std::string& message) const {
    std::string where = pointer_;
    if (!key.empty()) where += "/" + key_text(key);
    throw UserError(one_line(file_ + ": " + (where.empty() ? "/" : where) + ": " + message));
}

void require_memory_to_parse(const std::filesystem::path& path, double bytes) {
    constexpr double memory_of_a_byte = 8;  // traces take 5 to 8 times their size
    require_memory_for("the contents of " + path.string(), Bytes(memory_of_a_byte * bytes),
                       available_memory());
}

namespace {

/// Small files as they were parsed last: sweeps, what-ifs and comparisons read a machine's files for each run. A file
/// that was written since is parsed again. A file younger than two seconds is not kept, because it may be written once
/// more without a new time stamp.
class ParsedFiles {
public:
    template <class Parse>
    Json read(const std::filesystem::path& path, const Parse& parse) {
        const std::optional<Stamp> stamp = stamp_of(path);
        if (!stamp) return parse();
        const std::string name = std::filesystem::absolute(path).string();
        if (const auto found = kept(name); found != nullptr && found->first == *stamp) return found->second;
        const auto parsed = std::make_shared<const Parsed>(*stamp, parse());
        const std::lock_guard lock(mutex_);
        if (files_.size() == most_files) files_.clear();
        files_[name] = parsed;
        return parsed->second;
    }

private:
    using Stamp = std::pair<std::filesystem::file_time_type, std::uintmax_t>;
    using Parsed = std::pair<Stamp, Json>;
    static constexpr std::uintmax_t most_bytes = 1 << 20;
    static constexpr std::size_t most_files = 64;

    static std::optional<Stamp> stamp_of(const std::filesystem::path& path) {
        std::error_code time_unknown, size_unknown;
        const Stamp stamp(std::filesystem::last_write_time(path, time_unknown),
                          std::filesystem::file_size(path, size_unknown));
        const bool is_settled =
            std::filesystem::file_time_type::clock::now() - stamp.first > std::chrono::seconds(2);
        if (time_unknown || size_unknown || !is_settled || stamp.second > most_bytes) return std::nullopt;
        return stamp;
    }
    std::shared_ptr<const Parsed> kept(const std::string& path) {
        const std::lock_guard lock(mutex_);
        const auto found = files_.find(path);
        return found == files_.end() ? nullptr : found->second;
    }

    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<const Parsed>> files_;
};

Json parsed_file(const std::filesystem::path& path) {
    const std::filesystem::path plain = uncompressed_file(path, "a JSON file");
    std::ifstream in = open_input(plain, "a JSON file");
    std::error_code ignored;
    if (const auto bytes = std::filesystem::file_size(plain, ignored); !ignored)  // not of a pipe
        require_memory_to_parse(path, static_cast<double>(bytes));
    std::ostringstream content;
    content << in.rdbuf();
    return parse_json(content.str(), path.string());
}

}  // namespace

Json read_json_file(const std::filesystem::path& path) {
    static ParsedFiles files;
    return files.read(path, [&path] { return parsed_file(path); });
}

}  // namespace overlap
