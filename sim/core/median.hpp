#pragma once

#include <algorithm>
#include <vector>

namespace overlap {

/// The middle value, or the mean of the middle two; 0 if there are none.
template <class T>
T median(std::vector<T> values) {
    if (values.empty()) return T();
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

}  // namespace overlap
