#pragma once

#include <optional>
#include <string>

#include "sim/run/config_folder.hpp"
#include "sim/transformer/step.hpp"

namespace overlap {

/// Degrees of parallelism as a user asks for them; what is not set follows from the number of GPUs.
struct SpreadRequest {
    std::optional<int> tensor, experts, data;
    bool sequence_parallel = false, sharded = false, two_batches = false, best_sms = false;
    int context = 1;
    ContextExchange exchange = ContextExchange::all_gather;
    Zero zero = Zero::none;
    Pipeline pipeline = {};  ///< its number of micro-batches follows from StepRequest
};

/// A step as a user asks for it; what is not set follows from the model and the number of GPUs.
struct StepRequest : SpreadRequest {
    Phase phase = Phase::forward;
    DType dtype = DType::bf16;
    WeightFormat stored = {};
    std::string caches = "auto";  ///< auto: as the model's quantization_config says; or fp8, bf16
    std::optional<std::int64_t> sequence;
    std::optional<double> imbalance;
    Recompute recompute = Recompute::none;
    DType moments = DType::fp32;  ///< see Training
    Fp8Recipe recipe = Fp8Recipe::delayed;
    bool gemms_cast = false;                                ///< see Training
    std::optional<std::int64_t> micro_batch, global_batch;  ///< sequences
    std::int64_t draft = 0, mixed = 0;                      ///< see Decoding::draft and ::chunk
    bool fused_norms = false;                               ///< see Decoding
    std::optional<double> accepted;                         ///< default: all that is drafted

    /// Whether the batch is given in sequences, not in tokens.
    bool has_batch() const { return micro_batch || global_batch; }
};

/// The JSON of a config.json, with null for the Infinity and NaN that Python's json writes and JSON does not have.
Json read_model_file(const std::filesystem::path& path);
/// Read once for each folder.
const Families& families_of(const ConfigFolder& folder);
/// A file of configs/models, by name, or a config.json. Throws UserError.
Model named_model(const std::string& name, const ConfigFolder& folder, Unread unread = Unread::refused);

/// Sets the formats of operands and stored weights by `dtype` (of --dtype), or by what the model's files have where
/// that is empty. Training computes in bf16 unless `dtype` says otherwise. The model's notes say what was taken.
void take_formats(const std::string& dtype, const Machine& machine, StepRequest& request, Model& model);

/// Whether a kernel of its own rotates queries and keys. In decode fits to the public tables' operator have it in their
/// time (kernel_alone).
bool rotates_apart(const StepShape& shape, const Machine& machine);

/// Tensor parallelism over the GPUs that stages, parts of sequences, data and expert parallelism leave. Where tensor,
/// experts and data multiply to the number of GPUs, data counts the copies of the experts.
Parallelism spread_of(const StepRequest& request, int gpus);

/// The step of a global batch, in micro-batches; see StepShape::tokens. Throws UserError that begins with `where`.
StepShape step_of_batch(const StepRequest& request, const Model& model, const Parallelism& spread,
                        const std::string& where);

StepShape step_of(const StepRequest& request, const Model& model, const Parallelism& spread,
                  std::int64_t tokens);

/// Whether the workload of a run config stands for a layer of a model: {"model": "llama3_70b", "tokens": 8192}.
bool is_layer_request(const Json& workload);

/// The operator list of the most frequent kind of layer of the model, as the workload of a run config on `gpus`
/// GPUs. Keys of `workload`: model, tokens; tp, ep, dp, sequence_parallel, fsdp, phase, dtype, sequence, imbalance as
/// `sim model` has them. Throws UserError that begins with `place`.
Json layer_workload(const Json& workload, const std::string& place, int gpus, const ConfigFolder& folder);

}  // namespace overlap
