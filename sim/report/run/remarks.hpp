#pragma once

#include <string>
#include <vector>

namespace overlap {

/// Remarks printed beside a run's numbers.
struct Remarks {
    std::vector<std::string>
        notes;  ///< one line each, about surprising what-if changes and pairs of a list that run whole
};

}  // namespace overlap
