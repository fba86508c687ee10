#pragma once

#include "models/cost_model.hpp"

namespace overlap {

/// Where the device file has what prices a collective, below `collective_library`: "/all_gather", "/all_gather/small",
/// "/all_gather/by_ranks/8". Of a group of some GPUs of a node nothing is measured, so its key is in no file.
std::string key_of_collective(const CollectiveKernelWork& work, int gpu, const Machine& machine);

/// What DeepEP's kernel of an all-to-all was fitted to on the device. Throws UserError if it was not measured.
const ExchangeParameters& exchange_parameters(const ExpertExchange& exchange, const Machine& machine);

}  // namespace overlap
