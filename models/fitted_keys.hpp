#pragma once

#include <vector>

#include "sim/core/input_keys.hpp"

namespace overlap {

/// The key "provenance" of a group of a calibration.
template <class T>
InputKey<T> provenance_key(const std::string& doc) {
    return {"provenance",
            {{"description", doc}, {"type", "object"}, {"minProperties", 1}},
            [](ConfigObject& from, const std::string& key, T&) { from.object(key); }};
}

/// The keys of a group of a calibration that holds the parameters P of one cost model: where they are from, and the
/// tables of P.
template <class P>
std::vector<InputKey<P>> fitted_keys() {
    std::vector keys{
        provenance_key<P>("What was fitted, on which rows, with which errors; or what it was derived from.")};
    for (const auto& fields : {P::fixed_fields(), P::fields()})
        for (const Field<P>& field : fields) keys.emplace_back(field, "sourced");
    return keys;
}

}  // namespace overlap
