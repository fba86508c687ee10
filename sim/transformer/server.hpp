#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/transformer/serve.hpp"
#include "sim/transformer/step_request.hpp"
#include "sim/transformer/study.hpp"

namespace overlap {

/// A serving engine: whose kernels it runs, as far as devices have fits of them.
struct Server {
    std::string name;
    std::string kernels =
        {};  ///< library of its attention and grouped GEMMs; empty: no fit is of its kernels
    std::string all_reduces = {};  ///< how the names of its measured all-reduce kernels begin
    bool fp8_caches = false;       ///< keys and values in 8 bits where nothing else is asked for
    /// In decode a tensor-parallel all-reduce adds the residual and normalises the sum in one kernel.
    bool fused_norms = false;
    ServedMemory memory = {};
};

std::span<const Server> servers();

/// Lets a step take the kernels of the engine that the machine has, and leaves all others at their defaults. Says which.
std::string take_server(const Server& server, const Machine& machine, StudyOptions& options,
                        StepRequest& request);

}  // namespace overlap
