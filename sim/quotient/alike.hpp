#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace overlap {

/// Sets of things that are alike, by number (union-find).
class Alike {
public:
    explicit Alike(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0U); }
    /// The lowest number of its set.
    std::uint32_t first(std::size_t id) {
        auto at = static_cast<std::uint32_t>(id);
        while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
        return at;
    }
    void join(std::size_t a, std::size_t b) {
        const std::uint32_t one = first(a), other = first(b);
        parent_[std::max(one, other)] = std::min(one, other);
    }

private:
    std::vector<std::uint32_t> parent_;
};

}  // namespace overlap
