#pragma once

#include <cstdlib>

namespace overlap::test {

/// Whether tests take every case instead of a sample: `scripts/test --all`.
inline bool every_case() {
    return std::getenv("OVERLAP_ALL") != nullptr;
}

/// `few`, or `all` where every case is asked for.
template <class T>
T sampled(T few, T all) {
    return every_case() ? all : few;
}

}  // namespace overlap::test
