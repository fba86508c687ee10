#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <vector>

#include "models/cost_model.hpp"
#include "models/resources.hpp"

namespace overlap {

/// The holds on a resource, and the speeds that they can leave: one SimGrid pstate of a host for each.
struct SimgridHolds {
    int units = 0;  ///< sum of the holds that add up: whole units
    std::vector<double> largest;
    std::set<double> possible{0.0};  ///< values of the holds that do not add up
    bool add_up = false;

    void may_take(const Hold& hold) {
        if (hold.adds_up)
            add_up = true;
        else
            possible.insert(hold.units);
    }
    std::vector<double> speeds(double capacity) const {
        std::vector<double> result;
        for (const double other : possible)
            for (int held = 0; held <= (add_up ? static_cast<int>(capacity) : 0); ++held)
                result.push_back(std::max(capacity - held - other, least_capacity(capacity)) / capacity);
        return result;
    }
    std::size_t pstate(double capacity) const {
        const std::size_t levels = add_up ? static_cast<std::size_t>(capacity) + 1 : 1;
        const double most = largest.empty() ? 0 : *std::max_element(largest.begin(), largest.end());
        const auto which = static_cast<std::size_t>(std::distance(possible.begin(), possible.find(most)));
        return which * levels + std::min(static_cast<std::size_t>(units), levels - 1);
    }
};

}  // namespace overlap
