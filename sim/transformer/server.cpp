#include "sim/transformer/server.hpp"

#include <array>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/topology/device_library.hpp"

namespace overlap {

std::span<const Server> servers() {
    // TensorRT-LLM: AllReduceFusionOp.RESIDUAL_RMS_NORM (tensorrt_llm/functional.py). Its quantised checkpoints (ModelOpt)
    // keep keys and values in fp8. It begins what fits to its end (capacity_scheduler_policy GUARANTEED_NO_EVICT,
    // nvidia.github.io/TensorRT-LLM/performance/performance-tuning-guide/useful-runtime-flags.html), in
    // free_gpu_memory_fraction of what weights leave (llm-api/reference/KvCacheConfig.html there).
    // vLLM: gpu_memory_utilization (docs.vllm.ai/en/stable/api/vllm/config/cache). It and SGLang preempt; SGLang's share of
    // the memory depends on the GPU and is taken as all.
    static const std::array all{
        Server{.name = "vllm", .all_reduces = "vLLM", .memory = {.all = 0.92, .preempts = true}},
        Server{.name = "sglang", .memory = {.preempts = true}},
        Server{.name = "tensorrt_llm",
               .kernels = "tensorrt_llm",
               .all_reduces = "TensorRT-LLM",
               .fp8_caches = true,
               .fused_norms = true,
               .memory = {.rest = 0.9}}};
    return all;
}

std::string take_server(const Server& server, const Machine& machine, StudyOptions& options,
                        StepRequest& request) {
    std::vector<std::string> known, unknown;
    // `groups`: of kernel_groups
    const auto take_library = [&](const std::string& what, const std::string& key,
                                  const std::vector<std::string>& groups) {
        if (options.run.what_if.contains(key)) return;
        const auto has = std::ranges::any_of(machine.calibration.kernels.libraries, [&](const auto& fit) {
            return fit.second == server.kernels && contains(groups, fit.first.substr(0, fit.first.find('/')));
        });
        if (has) options.run.what_if[key] = server.kernels;
        (has ? known : unknown).push_back(what);
    };
    take_library("attention", "device.attention_library", {"attention_prefill", "attention_decode"});
    take_library("grouped GEMMs", "device.grouped_library", {"moe"});
    const auto& kernels = machine.topology.device().collective_library->all_reduces;
    std::vector<std::string> all_reduces;
    for (const auto& [kernel, measured] : kernels)
        if (!server.all_reduces.empty() && measured.name.starts_with(server.all_reduces))
            all_reduces.push_back(name_of(kernel));
    if (!all_reduces.empty()) {
        all_reduces.push_back(name_of(CollectiveKernel::library));
        known.push_back("all-reduces (" + joined(all_reduces) + ")");
        options.allowed.algorithms = std::move(all_reduces);
    } else {
        unknown.emplace_back("all-reduces");
    }
    request.fused_norms = server.fused_norms;
    if (server.fused_norms) known.emplace_back("norms within all-reduces");
    if (server.fp8_caches && request.caches == "auto") {
        request.caches = "fp8";
        known.emplace_back("8-bit keys and values");
    }
    return "server " + server.name + ": " + (known.empty() ? "" : joined(known) + " are its own; ") +
           (unknown.empty() ? ""
                            : "of its " + joined(unknown) +
                                  " there is no fit here, so those of any library are taken; ") +
           "its host's time between steps is not known and left out";
}

}  // namespace overlap
