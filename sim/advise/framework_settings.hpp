#pragma once

#include "sim/advise/table.hpp"

namespace overlap {

/// Programs that have settings for overlap: vLLM, PyTorch, Transformer Engine, Megatron-LM, NCCL or RCCL, and DeepEP, which
/// has a model in place of GEMMs (deepep_settings).
inline const std::array<std::string, 6> framework_names{"vllm",     "pytorch", "te",
                                                        "megatron", "nccl",    "deepep"};

/// What a user pastes into a framework's configuration for these GEMMs, with the times that decide it as comments; "leave
/// it off" where that is faster. vllm and pytorch get the number of tokens from which overlap pays, the others settings
/// for `tokens`. `config` names machine and host. Throws UserError.
std::string framework_settings(const std::string& framework, const RunConfig& config,
                               const std::vector<TableGemm>& gemms, std::optional<std::int64_t> tokens,
                               const ConfigFolder& folder);

}  // namespace overlap
