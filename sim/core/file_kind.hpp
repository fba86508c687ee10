#pragma once

#include <string>
#include <string_view>

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
    plan,
    measured_case,
    sweep,
    topology,
    device,
    schedule,
    run_config,
    workload,
    mscclpp_plan,
    astra_network,
    astra_system
};

/// Throws UserError, with the file's kind and the command that reads it, if `json` is of another known kind
/// than `expected`. A file of no known kind passes: its reader reports what is missing.
void require_kind(const Json& json, const std::string& file, FileKind expected);

/// What a text that is no JSON is, and what to do with it: "a workload of SimAI; ..."; empty if that is not known.
std::string kind_of_text(std::string_view text);

}  // namespace overlap
