#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "sim/run/config_folder.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {

/// Which step of which model runs on which machine.
struct ModelFlags;

/// The flags of a model's step, without those of an output.
std::shared_ptr<ModelFlags> add_model_flags(CLI::App& command);

/// The lists of the step, each by the schedules that `sim model` finds, and how often each runs. Throws UserError.
std::vector<std::pair<RunConfig, double>> runs_of_step(const ModelFlags& flags, const ConfigFolder& folder);

}  // namespace overlap
