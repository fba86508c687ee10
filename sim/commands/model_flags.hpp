#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "sim/run/config_folder.hpp"
#include "sim/run/run_config.hpp"
#include "sim/transformer/serve.hpp"
#include "sim/transformer/step_request.hpp"

namespace overlap {

/// How a step is simulated, and what is written.
struct StudyFlags {
    std::string kernels = "library", format = "text", write, html;
    std::vector<std::string> what_if;
    bool all = false, cool = false;
    int seeds = 3;
};

/// Which step of which model runs on which machine.
struct ModelFlags : StudyFlags {
    std::string config, topology, dtype, phase = "forward", pipeline, all_to_all, server;
    std::int16_t sms = 20;  ///< of DeepEP's normal kernels: the default of deep_ep.Buffer
    std::vector<std::int64_t> tokens{4096};
    std::optional<std::int64_t> layers;
    std::int64_t predicting = 0;
    StepRequest request;
    std::optional<ServeLoad> load;  ///< of phase serve
    bool known_part = false;
    std::vector<std::string> given;  ///< flags that only models have
};

/// The flags of a model's step, without those of an output.
std::shared_ptr<ModelFlags> add_model_flags(CLI::App& command);

/// The lists of the step, each by the schedules that `sim model` finds, and how often each runs. Throws UserError.
std::vector<std::pair<RunConfig, double>> runs_of_step(const ModelFlags& flags, const ConfigFolder& folder);

}  // namespace overlap
