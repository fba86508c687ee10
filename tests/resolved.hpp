#pragma once

#include "sim/run/resolver.hpp"
#include "tests/test_support.hpp"

namespace overlap::test {

/// The same as resolve(config, shipped), which reads the machine's files each time.
inline Scenario resolved(const RunConfig& config) {
    static Resolver resolver(shipped);
    return resolver.resolve(config);
}

}  // namespace overlap::test
