#pragma once

#include <string>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// Kinds of JSON files that users may pass, ours and others'.
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

/// Throws UserError, with the file's kind and the command that reads it, if `json` is of another known kind
/// than `expected`. A file of no known kind passes: its reader reports what is missing.
void require_kind(const Json& json, const std::string& file, FileKind expected);

}  // namespace overlap
