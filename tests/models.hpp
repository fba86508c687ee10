#pragma once

#include "sim/transformer/layer.hpp"
#include "tests/test_support.hpp"

// Shipped models, and steps of 8 GPUs.
namespace overlap::test {

inline Model shipped_model(const std::string& name) {
    const Json json = read_json_file(shipped.find("models", name));
    return read_model(ConfigObject(json, name), name);
}

inline StepShape step_of(Phase phase, std::int64_t tokens, std::int64_t sequence, Parallelism spread) {
    return {phase, tokens, sequence, DType::bf16, spread};
}

inline constexpr Parallelism alone{}, tensor{8, 8, 1, 1, false}, sequence{8, 8, 1, 1, true},
    experts{8, 1, 8, 8, false}, data{8, 1, 1, 8, false};

}  // namespace overlap::test
