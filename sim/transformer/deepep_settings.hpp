#pragma once

#include "sim/run/config_folder.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {

/// What a user tells DeepEP for the layers of a model with experts on all GPUs of a machine: the number of SMs of its
/// normal kernels, the low-latency kernels, or that it is to be left off, with the times that decide it as comments.
/// `config` names machine and host; `tokens` are those of a GPU. Throws UserError.
std::string deepep_settings(const std::string& model, const RunConfig& config, std::int64_t tokens,
                            const ConfigFolder& folder);

}  // namespace overlap
