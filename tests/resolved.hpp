#pragma once

#include "sim/run/resolver.hpp"
#include "tests/test_support.hpp"

namespace overlap::test {

/// The same as resolve(config, shipped), but reads each file once a process. For configs whose files no test changes; a host
/// that a test writes anew under the same path needs resolve().
inline Scenario resolved(const RunConfig& config) {
    static Resolver resolver(shipped);
    return resolver.resolve(config);
}

}  // namespace overlap::test
