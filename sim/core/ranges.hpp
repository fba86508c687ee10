#pragma once

#include <algorithm>
#include <functional>
#include <type_traits>
#include <vector>

// What the ranges of C++20 lack.
namespace overlap {

/// Whether one of `values` equals `value`.
template <class Values, class Value>
bool contains(const Values& values, const Value& value) {
    return std::ranges::find(values, value) != std::ranges::end(values);
}

/// The place of the first of `values` that equals `value`; their number if none does.
template <class Values, class Value>
std::size_t place_of(const Values& values, const Value& value) {
    return static_cast<std::size_t>(std::ranges::find(values, value) - std::ranges::begin(values));
}

/// The value of `key` in a map; null if it has none.
template <class Map, class Key>
auto* value_at(Map& map, const Key& key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
}

/// What `make`, a function or a member, makes of each of `values`.
template <class Values, class Make>
auto mapped(const Values& values, Make make) {
    using Made = std::invoke_result_t<Make&, std::ranges::range_reference_t<const Values>>;
    std::vector<std::remove_cvref_t<Made>> made;
    for (const auto& one : values) made.push_back(std::invoke(make, one));
    return made;
}

/// Adds `more` at the end of `values`.
template <class Value, class Values>
void append(std::vector<Value>& values, const Values& more) {
    values.insert(values.end(), std::ranges::begin(more), std::ranges::end(more));
}

/// The keys of a map, in its order.
template <class Map>
auto keys_of(const Map& map) {
    return mapped(map, &Map::value_type::first);
}

}  // namespace overlap
