#include "tests/fuzz/mutator.hpp"

#include <random>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap::fuzz {
namespace {

using Random = std::minstd_rand;

/// Values of every type, and numbers at the ends of the types that could hold them.
const Json& strange_values() {
    static const Json values =
        Json::parse(R"([null, true, false, 0, 1, 2, 3, 4, 7, 8, 64, 4097, -1, -0.0, 0.5, 1e-320,
        1e-30, 1e9, 1e15, 1e300, -1e300, 2147483647, 2147483648, 4294967296, 9007199254740993, -9223372036854775808,
        9223372036854775807, 9223372036854775808, 18446744073709551615, "", "a", "0", "2x", "-1x", "1e999x",
        "\u0000", "\n", "\u001b[31m", "é€𝄞", "nan", "..", "/", "=1+1", "'\"<&>", [], {}, [[]], [0], [1, "a"],
        {"value": 1}, {"value": 1, "source": "x"}, {"from": 1, "to": 8, "times": 2}, {"files": "*"}, {"": 0}])");
    return values;
}

std::size_t below(Random& random, std::size_t end) {
    return end == 0 ? 0 : random() % end;
}

void collect(Json& json, std::vector<Json*>& all) {
    all.push_back(&json);
    if (json.is_structured() && all.size() < 10'000)
        for (Json& child : json) collect(child, all);
}

/// Keys of the whole text, to rename others to.
std::vector<std::string> keys_of(const std::vector<Json*>& all) {
    std::vector<std::string> keys{"", "value", "source"};
    for (const Json* json : all)
        if (json->is_object())
            for (const auto& item : json->items()) keys.push_back(item.key());
    return keys;
}

void mutate(Json& root, Random& random) {
    std::vector<Json*> all;
    collect(root, all);
    Json& at = *all[below(random, all.size())];
    const Json& strange = strange_values();
    const auto child = [&] { return std::next(at.begin(), static_cast<long>(below(random, at.size()))); };
    switch (random() % 8) {
        case 0:
            at = Json(*all[below(random, all.size())]);
            return;
        case 1:
            if (at.is_structured() && !at.empty()) at.erase(child());
            return;
        case 2:
            if (at.is_array() && !at.empty()) at.push_back(Json(*child()));
            return;
        case 3:
            if (at.is_object()) {
                const std::vector<std::string> keys = keys_of(all);
                const Json value = at.empty() ? Json(1) : Json(*child());
                at[keys[below(random, keys.size())]] = value;
            }
            return;
        case 4:
            at = random() % 2 == 0 ? Json::array({at}) : Json{{"value", at}};
            return;
        case 5:
            if (at.is_number())
                at = at.get<double>() * std::vector{-1.0, 0.5, 2.0, 10.0, 1e6, 1e12}[below(random, 6)];
            return;
        case 6:
            if (at.is_number_integer()) at = at.get<std::int64_t>() ^ (std::int64_t{1} << below(random, 62));
            return;
        default:
            at = strange[below(random, strange.size())];
    }
}

}  // namespace

std::string mutated_json(std::string_view text, unsigned seed) {
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return "";
    Random random(seed + 1);
    for (auto times = 1 + random() % 3; times > 0; --times) mutate(json, random);
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string mutated_bytes(std::string_view text, unsigned seed) {
    Random random(seed + 1);
    std::string bytes(text);
    for (auto times = 1 + random() % 4; times > 0; --times) {
        const std::size_t at = below(random, bytes.size()),
                          length = 1 + below(random, bytes.size() - at) % 64;
        switch (random() % 5) {
            case 0:
                bytes.erase(at, length);
                break;
            case 1:
                bytes.insert(at, bytes.substr(at, length));
                break;
            case 2:
                bytes.insert(at, 1, static_cast<char>(random() % 256));
                break;
            case 3:
                bytes.insert(at, std::to_string(random()));
                break;
            default:
                if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        }
    }
    return bytes;
}

}  // namespace overlap::fuzz
