#include "sim/core/file_kind.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace overlap {
namespace {

struct Known {
    FileKind kind;
    const char* name;
    const char* use;
    std::vector<std::vector<const char*>> keys;  ///< a file of this kind has all keys of one of the lists
};

// The first match counts.
const std::array<Known, 13>& known_kinds() {
    using enum FileKind;
    static const std::array<Known, 13> kinds{{
        {chrome_trace,
         "a Chrome trace, as torch.profiler writes",
         "sim import FILE --scenario CONFIG --out CASE.json makes a measured case of it",
         {{"traceEvents"}}},
        {rocprof_trace,
         "a trace of rocprofv3",
         "sim import FILE --scenario CONFIG --out CASE.json makes a measured case of it",
         {{"rocprofiler-sdk-tool"}}},
        {model_config,
         "the config of a Hugging Face model",
         "sim model FILE --topology T takes it",
         {{"model_type"}, {"architectures"}, {"hidden_size", "num_hidden_layers"}}},
        {experiment, "a published experiment", "see sim reproduce", {{"cases", "scenarios", "variants"}}},
        {tolerances, "a file of claims", "sim compare CASES --tolerances FILE takes it", {{"claims"}}},
        {result, "a result of sim", "its 'config' is a run config", {{"config", "makespan_us"}}},
        {measured_case,
         "a measured case",
         "sim compare FILE takes it",
         {{"system", "scenario"}, {"system", "spans"}}},
        {sweep, "a sweep", "sim sweep FILE --out DIR runs it", {{"axes"}, {"zipped"}, {"points"}}},
        {topology,
         "a topology",
         "--topology FILE takes it",
         {{"device", "fabric"}, {"device", "gpus_per_node"}}},
        {device, "a device", "a topology file names it", {{"compute_units", "hbm_GBps"}}},
        {schedule, "a preset of a schedule", "--schedule FILE takes it", {{"schedule", "workloads"}}},
        {run_config, "a run config", "sim --config FILE runs it", {{"schedule"}, {"topology"}}},
        {workload, "a workload", "--workload FILE takes it", {{"gemm", "collective"}, {"operators"}}},
    }};
    return kinds;
}

bool fits(const Known& kind, const Json& json, const Known* except = nullptr) {
    const auto is_of = [&](std::string_view key) {
        return except != nullptr && std::ranges::any_of(except->keys, [&](const auto& keys) {
                   return std::ranges::find(keys, key) != keys.end();
               });
    };
    return std::ranges::any_of(kind.keys, [&](const std::vector<const char*>& keys) {
        return std::ranges::all_of(keys, [&](const char* key) { return json.contains(key); }) &&
               !std::ranges::all_of(keys, is_of);
    });
}

}  // namespace

void require_kind(const Json& json, const std::string& file, FileKind expected) {
    const auto& kinds = known_kinds();
    const auto wanted =
        std::ranges::find_if(kinds, [&](const Known& known) { return known.kind == expected; });
    if (!json.is_object() || fits(*wanted, json)) return;
    // Keys that files of the expected kind have, too, tell nothing: one of them may lack another key.
    const auto found =
        std::ranges::find_if(kinds, [&](const Known& known) { return fits(known, json, &*wanted); });
    if (found != kinds.end())
        throw UserError(file + ": is " + found->name + ", expected " + wanted->name + " (" + found->use +
                        ")");
}

}  // namespace overlap
