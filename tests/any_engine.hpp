#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/engine/engine.hpp"

namespace overlap::test {

/// A test that asks for it runs once for each registered engine.
inline std::string any_engine() {
    std::vector<std::string> names;
    for (const EngineEntry& entry : engines()) names.push_back(entry.name);
    return GENERATE_COPY(from_range(names));
}

}  // namespace overlap::test
