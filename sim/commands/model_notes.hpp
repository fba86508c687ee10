#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/commands/model_flags.hpp"
#include "sim/transformer/study.hpp"

namespace overlap {

/// The clock of steps that follow one another, as users run them, if the power of their work is known.
StepClock step_clock(const ModelFlags& flags, const Machine& machine, std::span<const DType> operands);
/// What is taken for the GPUs' clock.
std::string clock_note(const ModelFlags& flags, const Machine& machine, std::span<const DType> operands);

/// What a reader of the steps has to know; `device_file`: for sim explain.
std::vector<std::string> notes_of(const Model& model, const std::vector<StepStudy>& steps,
                                  const Machine& machine, const std::string& device_file);

/// PyTorch's linear quantises A itself, and its grouped GEMMs take longer than a server's fused layers. Where a device
/// has such GEMMs beside others, training takes them, and the notes say so.
void take_training_libraries(StepRequest& request, const ConfigFolder& folder, StudyOptions& options,
                             Model& model);

}  // namespace overlap
