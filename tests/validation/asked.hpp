#pragma once

#include <catch2/catch.hpp>

namespace overlap::test {

/// Mean and 90th percentile of |predicted / measured - 1|.
struct Errors {
    double mean, p90;
};

/// A claim on a class of predictions. What was asked for does not follow what comes out.
struct Asked {
    Errors asked;
    Errors reached;    ///< rounded up: what a class must not exceed
    bool gap = false;  ///< not what was asked for, and asserted to be so still
};

constexpr bool known_gap = true;

/// For a GEMM or a copy of at least 1 MiB; for a smaller copy; for how much one kind of work slows another;
/// for what a GEMM loses when it is cut.
constexpr Errors of_times{0.05, 0.12}, of_small_copies{0.12, 0.25}, of_factors{0.06, 0.15},
    of_losses{0.04, 0.10};
/// Nothing was asked.
constexpr Errors unasked{1e9, 1e9};

template <class Found>
void check(const Found& found, const Asked& claim) {
    CHECK(found.mean <= claim.reached.mean);
    CHECK(found.p90 <= claim.reached.p90);
    const bool as_asked = found.mean <= claim.asked.mean && found.p90 <= claim.asked.p90;
    CHECK(as_asked == !claim.gap);
}

}  // namespace overlap::test
