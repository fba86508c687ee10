#include "models/cost_model_registry.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "sim/core/shown.hpp"

namespace overlap {

std::unique_ptr<CostModel> make_fused_attention();
std::unique_ptr<CostModel> make_gemm_grouped();
std::unique_ptr<CostModel> make_gemm_measured();
std::unique_ptr<CostModel> make_gemm_tiled();
std::unique_ptr<CostModel> make_gemm_roofline();
std::unique_ptr<CostModel> make_kernel_store();
std::unique_ptr<CostModel> make_dma_copy();
std::unique_ptr<CostModel> make_kernel_copy();
std::unique_ptr<CostModel> make_streaming();
std::unique_ptr<CostModel> make_library_kernel();
std::unique_ptr<CostModel> make_host_call();

std::span<const CostModelEntry> cost_models() {
    static const std::array<CostModelEntry, 11> entries{{
        {"gemm_grouped", "grouped gemm",
         "The rows of each expert times that expert's weights, in one kernel; fitted to fused MoE kernels, "
         "elsewhere a batch of GEMMs. The busiest GPU's rows.",
         make_gemm_grouped},
        {"fused_attention", "attention",
         "Fused attention: tiles of queries (prefill), parts of the context (decode); fitted per device and "
         "number format, elsewhere streaming's roofline.",
         make_fused_attention},
        {"gemm_measured", "gemm",
         "The measured time of a shape that the calibration lists (the parts of many operators); "
         "gemm_tiled for every other.",
         make_gemm_measured},
        {"gemm_tiled", "gemm",
         "Macro-tiles in waves with a tail, split-K, operand traffic with cache reuse; fitted per device and "
         "dtype.",
         make_gemm_tiled},
        {"gemm_roofline", "gemm",
         "FLOPs at the datasheet rate or operands once through HBM; no tiles, so no decomposition loss.",
         make_gemm_roofline},
        {"kernel_store", "copy by the stores of the kernel that makes it",
         "Bytes over the links as they are made; no engine, no launch, no read at the source.",
         make_kernel_store},
        {"dma_copy", "copy by dma",
         "Command, schedule, start, bytes at the engine's or the narrowest link's rate, completion; also "
         "broadcasts, swaps, batches back to back, pre-launched.",
         make_dma_copy},
        {"kernel_copy", "copy by cu",
         "Launch, bytes at a rate that saturates with the compute units held, completion.", make_kernel_copy},
        {"streaming", "local_copy, reduce, memory_bound",
         "Bytes through HBM on the compute units that saturate it; no cache hits.", make_streaming},
        {"library_kernel", "collective",
         "A library collective's measured latency and bus rate, of the faster protocol; its channels are "
         "held, its links used.",
         make_library_kernel},
        {"host_call", "host", "Host time of the calls that enqueue a task.", make_host_call},
    }};
    return entries;
}

CostModels::CostModels(std::span<const std::string> chosen) {
    for (const std::string& name : chosen) {
        const auto entries = cost_models();
        const auto found =
            std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.name == name; });
        if (found == entries.end()) {
            std::vector<std::string> names;
            for (const CostModelEntry& entry : entries) names.push_back(entry.name);
            throw UserError("cost model " + in_quotes(name) + " is not known" + suggestion(name, names));
        }
        models_.push_back(found->make());
    }
    for (const CostModelEntry& entry : cost_models()) models_.push_back(entry.make());
}

Cost CostModels::cost(const Task& task, const Machine& machine) const {
    for (const auto& model : models_)
        if (model->handles(task)) return model->cost(task, machine);
    assert(false && "every kind of task has a default cost model");
    return {};
}

}  // namespace overlap
