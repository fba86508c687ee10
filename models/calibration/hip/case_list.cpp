// Reads the list of cases; no GPU code.

#include "models/calibration/hip/case_list.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

namespace overlap::hip {
namespace {

std::optional<std::int64_t> parse_count(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

std::optional<std::int64_t> parse_bytes(const std::string& text) {
    static const std::map<std::string, int> shifts = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
    const auto unit = shifts.find(text.size() > 3 ? text.substr(text.size() - 3) : "");
    if (unit == shifts.end()) return parse_count(text);
    const auto count = parse_count(text.substr(0, text.size() - 3));
    if (!count || *count > (std::int64_t{1} << (62 - unit->second))) return std::nullopt;
    return *count << unit->second;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    if (text.empty() || text.back() == separator) parts.emplace_back();
    return parts;
}

template <class Items, class Name>
std::string names(const Items& items, Name name) {
    std::string result;
    for (const auto& item : items) result += (result.empty() ? "" : ", ") + name(item);
    return result;
}

std::string allowed(const Key& key) {
    if (key.type == Type::count) return "a whole number from 0";
    if (key.type == Type::bytes) return "bytes, such as 4096, 4KiB, 16MiB, 1GiB";
    return names(key.words, [](const std::string& word) { return word; });
}

bool is_allowed(const Key& key, const std::string& value) {
    if (key.type == Type::count) return parse_count(value).has_value();
    if (key.type == Type::bytes) return parse_bytes(value).has_value();
    return std::find(key.words.begin(), key.words.end(), value) != key.words.end();
}

constexpr std::size_t most_cases = 100'000;  // a longer list would run for hours

class LineReader {
public:
    LineReader(std::string place, int line, const std::vector<Kind>& kinds)
        : place_(std::move(place)), line_(line), kinds_(kinds) {}

    void read(const std::string& text, std::vector<Case>& cases) {
        if (std::any_of(text.begin(), text.end(),
                        [](unsigned char c) { return c < ' ' && !std::isspace(c); }))
            fail("holds bytes that are not text");
        std::istringstream words(text.substr(0, text.find('#')));
        std::string name;
        if (!(words >> name)) return;
        const auto kind =
            std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& k) { return k.name == name; });
        if (kind == kinds_.end())
            fail("unknown kind '" + name +
                 "'; allowed: " + names(kinds_, [](const Kind& k) { return k.name; }));
        std::map<std::string, std::string> given;
        for (std::string word; words >> word;) give(*kind, word, given);
        expand(*kind, given, Case{kind->name, line_, {}}, cases);
    }

private:
    [[noreturn]] void fail(const std::string& message) const { throw UserError(place_ + ": " + message); }

    void give(const Kind& kind, const std::string& word, std::map<std::string, std::string>& given) const {
        const auto equals = word.find('=');
        if (equals == std::string::npos) fail("'" + word + "' is not key=value or key=value,value");
        const std::string key = word.substr(0, equals);
        if (std::none_of(kind.keys.begin(), kind.keys.end(), [&](const Key& k) { return k.name == key; }))
            fail("unknown key '" + key + "' of " + kind.name +
                 "; allowed: " + names(kind.keys, [](const Key& k) { return k.name; }));
        if (!given.emplace(key, word.substr(equals + 1)).second) fail("key '" + key + "' is given twice");
    }

    void expand(const Kind& kind, const std::map<std::string, std::string>& given, const Case& begun,
                std::vector<Case>& cases) const {
        if (begun.values.size() == kind.keys.size()) {
            if (cases.size() == most_cases) fail("the list has more than 100000 cases by here");
            cases.push_back(begun);
            return;
        }
        const Key& key = kind.keys[begun.values.size()];
        const auto value = given.find(key.name);
        if (value == given.end() && key.fallback.empty())
            fail(kind.name + " needs " + key.name + "=…; allowed: " + allowed(key));
        for (const std::string& one : split(value == given.end() ? key.fallback : value->second, ',')) {
            if (!is_allowed(key, one)) fail(key.name + "=" + one + ": allowed: " + allowed(key));
            Case longer = begun;
            longer.values.emplace_back(&key, one);
            expand(kind, given, longer, cases);
        }
    }

    std::string place_;
    int line_;
    const std::vector<Kind>& kinds_;
};

}  // namespace

const std::string& Case::word(const std::string& key) const {
    for (const auto& [rule, value] : values)
        if (rule->name == key) return value;
    throw std::logic_error(kind + " has no key " + key);
}

std::int64_t Case::count(const std::string& key) const {
    return parse_count(word(key)).value();
}
std::int64_t Case::bytes(const std::string& key) const {
    return parse_bytes(word(key)).value();
}

std::string Case::text() const {
    std::string result = kind;
    for (const auto& [key, value] : values) result += " " + key->name + "=" + value;
    return result;
}

std::vector<Case> read_cases(const std::string& path, const std::vector<Kind>& kinds) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored))
        throw UserError(path + ": is a directory, expected a list of cases");
    std::ifstream file(path);
    if (!file) throw UserError(path + ": cannot be read");
    std::vector<Case> cases;
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        LineReader(path + ":" + std::to_string(number), number, kinds).read(line, cases);
    }
    if (cases.empty()) throw UserError(path + ": no cases; a line is: kind key=value key=value,value …");
    return cases;
}

}  // namespace overlap::hip
