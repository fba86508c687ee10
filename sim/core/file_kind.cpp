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

constexpr const char* machine_of_astra =
    "sim new device NAME --like DEVICE --gpus N --link-GBps RATE (--switch for Switch, without it for FullyConnected) "
    "makes a machine of it";

// The first match counts.
const std::array<Known, 17>& known_kinds() {
    using enum FileKind;
    static const std::array<Known, 17> kinds{{
        {chrome_trace,
         "a Chrome trace, as torch.profiler writes",
         "sim import FILE --scenario CONFIG --out CASE.json makes a measured case of it",
         {{"traceEvents"}}},
        {rocprof_trace,
         "a trace of rocprofv3",
         "sim import FILE --scenario CONFIG --out CASE.json makes a measured case of it",
         {{"rocprofiler-sdk-tool"}}},
        {astra_network, "a network of ASTRA-sim", machine_of_astra, {{"npus_count"}, {"logical-dims"}}},
        {astra_system,
         "a system of ASTRA-sim",
         "--set algorithm=ring or direct is what its implementations of collectives choose, sim new device makes a "
         "machine",
         {{"all-reduce-implementation"}, {"scheduling-policy"}, {"memory-type"}}},
        {model_config,
         "the config of a Hugging Face model",
         "sim model FILE --topology T takes it",
         {{"model_type"}, {"architectures"}, {"hidden_size", "num_hidden_layers"}}},
        {experiment, "a published experiment", "see sim reproduce", {{"cases", "scenarios", "variants"}}},
        {tolerances, "a file of claims", "sim compare CASES --tolerances FILE takes it", {{"claims"}}},
        {result, "a result of sim", "its 'config' is a run config", {{"config", "makespan_us"}}},
        {plan,
         "a plan",
         "sim --plan FILE simulates it",
         {{"tasks", "gpus"}, {"tasks", "buffers"}, {"tasks", "not_placed"}}},
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
        {run_config, "a run config", "sim --config FILE runs it", {{"schedule"}, {"topology"}, {"plan"}}},
        {mscclpp_plan,
         "a plan of MSCCL++",
         "overlap.read_mscclpp in Python makes a plan of it, which sim --plan FILE simulates",
         {{"collective", "protocol", "gpus"}}},
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

namespace {

constexpr const char* perfetto =
    "a Perfetto trace, but none of rocprofv3, whose kernels and copies are read; record with torch.profiler "
    "(export_chrome_trace), nsys or rocprofv3";

/// Field 1 of protobuf, a packet, begins with the byte of a line break, behind which its length stands.
bool is_perfetto(std::string_view text) {
    constexpr std::size_t looked_at = 64;
    return text.starts_with('\n') && std::ranges::any_of(text.substr(0, looked_at), [](char c) {
               return static_cast<unsigned char>(c) < '\t';
           });
}

}  // namespace

std::string kind_of_text(std::string_view text) {
    struct Foreign {
        std::string_view begins, holds, is;
    };
    static const std::string astra_network = std::string("a network of ASTRA-sim; ") + machine_of_astra;
    static constexpr std::string_view simai =
        "a workload of SimAI (AICB) or ASTRA-sim, whose times are of its own machine; sim model NAME --tp N --ep N has "
        "the operators of a model's layers, sim chakra read those of a Chakra trace";
    static const std::array foreign{
        Foreign{
            "<system", "",
            "a machine as NCCL and RCCL describe it (XML); sim new topology --from FILE makes a topology of it"},
        Foreign{
            "<algo", "",
            "an algorithm of MSCCL (XML); overlap.read_msccl in Python makes a plan of it, which sim --plan FILE simulates"},
        Foreign{"", "model_parallel_NPU_group", simai},
        Foreign{"HYBRID_", "", simai},
        Foreign{"MICRO", "", simai},
        Foreign{"", "npus_count:", astra_network},
        Foreign{"", "Gbps 0.", astra_network},  // links of ns-3: "0 8 400Gbps 0.0005ms 0"
        Foreign{"", "ROCm System Management Interface",
                "what rocm-smi prints; sim new topology --from FILE makes a topology of its --showtopo"},
        Foreign{"", "NUMA Affinity",
                "what nvidia-smi topo -m prints; sim new topology --from FILE makes a topology of it"}};
    constexpr std::size_t looked_at = 4096;
    text = text.substr(0, looked_at);
    if (is_perfetto(text)) return perfetto;
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (text.starts_with('{') || text.starts_with('[')) return "";
    for (const Foreign& one : foreign)
        if (!one.begins.empty()
                ? text.starts_with(one.begins) ||
                      (text.starts_with("<?xml") && text.find(one.begins) != std::string_view::npos)
                : text.find(one.holds) != std::string_view::npos)
            return std::string(one.is);
    return "";
}

}  // namespace overlap
