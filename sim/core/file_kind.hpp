#pragma once

#include <string>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// Kinds of JSON file that people have at hand, ours and others'.
enum class FileKind {
    chrome_trace,
    rocprof_trace,
    model_config,
    experiment,
    tolerances,
    result,
    measured_case,
    sweep,
    topology,
    device,
    schedule,
    run_config,
    workload
};

/// Throws a UserError that says what the file is and which command takes it, where `json` is recognised as
/// another kind than `expected`. A file of no known kind passes: its reader says what it lacks.
void require_kind(const Json& json, const std::string& file, FileKind expected);

}  // namespace overlap
