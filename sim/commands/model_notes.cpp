#include "sim/commands/model_notes.hpp"

#include <cmath>

#include "sim/confidence/evidence.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/text_format.hpp"
#include "sim/run/steady.hpp"
#include "sim/transformer/layer.hpp"

namespace overlap {
namespace {

/// How attention is priced, if not by a fit to measurements of the device.
std::string attention_prices(const Model& model, const StepShape& shape, const Machine& machine,
                             const std::string& device_file) {
    const bool decode = shape.phase == Phase::decode;
    if (decode && model.latent())
        return "latent attention's decode is a roofline, a lower bound: no public table has its kernel";
    const DType type = output_type(shape.dtype);
    const AttentionCall call{
        .kind = decode ? AttentionKind::decode : AttentionKind::prefill, .dtype = type, .kv_dtype = type};
    const Evidence* found =
        value_at(evidence_of(machine).kernels,
                 kernel_groups[decode ? 1 : 0] + "/" + attention_fit(machine.calibration.kernels, call));
    const std::string& device = machine.topology.device().name;
    if (found == nullptr)
        return "attention is a roofline, a lower bound: no table of " + device + " was fitted";
    if (found->basis == Basis::fitted) return "";
    return "attention is priced by the fit of another device, scaled by data sheets (sim explain " +
           device_file + ")";
}

/// That what a GPU holds is more than it has memory for; empty if it fits.
std::string memory_note(const Model& model, const std::vector<StepStudy>& steps, const Machine& machine) {
    Bytes most;
    for (const StepStudy& step : steps) {
        Bytes held = least_memory(model, step.shape);
        if (step.shape.phase == Phase::training) held += kept_activations(model, step.shape);
        most = std::max(most, held);
    }
    const Bytes capacity = machine.topology.device().hbm_capacity;
    if (most <= capacity) return "";
    const auto gigabytes = [](Bytes bytes) { return std::to_string(std::llround(bytes.si() * 1e-9)); };
    const Phase phase = steps.front().shape.phase;
    return std::string("does not fit: weights") +
           (phase == Phase::training ? ", gradients, optimiser states and activations"
            : phase == Phase::decode ? ", keys and values"
                                     : "") +
           " take " + gigabytes(most) + " GB a GPU, which has " + gigabytes(capacity);
}

}  // namespace

StepClock step_clock(const ModelFlags& flags, const Machine& machine, std::span<const DType> operands) {
    if (flags.cool) return StepClock::alone;
    return no_power_constants(machine, operands).empty() ? StepClock::settled : StepClock::step;
}

std::string clock_note(const ModelFlags& flags, const Machine& machine, std::span<const DType> operands) {
    switch (step_clock(flags, machine, operands)) {
        case StepClock::alone:
            return "GPUs are cool at the start of each layer";
        case StepClock::settled:
            return "clocks have settled at the power limit (--cool: each layer on cool GPUs)";
        case StepClock::step:
            break;
    }
    return "one step on cool GPUs; of " + machine.topology.device().name + " " +
           no_power_constants(machine, operands) + ", so a steady state can't be told";
}

std::vector<std::string> notes_of(const Model& model, const std::vector<StepStudy>& steps,
                                  const Machine& machine, const std::string& device_file) {
    std::vector<std::string> notes = model.notes;
    notes.emplace_back("layers do not overlap with one another");
    const StepShape& shape = steps.front().shape;
    if (std::ranges::any_of(model.shapes, [](const LayerShape& layer) { return layer.scan.columns > 0; }))
        notes.emplace_back(
            "scans of linear attention, Mamba and convolutions are priced by the memory that they move: a lower bound");
    if (const std::string much = memory_note(model, steps, machine); !much.empty()) notes.push_back(much);
    if (const std::string how = attention_prices(model, shape, machine, device_file); !how.empty())
        notes.push_back(how);
    if (model.has_experts())
        notes.push_back(
            !steps.front().shape.imbalance
                ? "each token picks its experts at random (--imbalance 0: evenly, 1.2: by a power law)"
            : steps.front().shape.imbalance == 0
                ? "tokens go to experts evenly (--imbalance 1.2: by a power law)"
                : "tokens go to experts by a power law; every GPU is as busy as the busiest");
    if (shape.decoding.draft > 0)
        notes.push_back("a step verifies " + std::to_string(shape.decoding.draft) +
                        " drafted tokens a sequence, which gains " + plain(shape.decoding.accepted) +
                        " (--accepted); what drafts them is not priced");
    if (shape.decoding.chunk > 0)
        notes.push_back("beside " + std::to_string(shape.decoding.chunk) +
                        " tokens of a prompt (--mixed), which tokens/s don't count");
    const bool unpaired =
        steps.front().shape.spread.gpus > 1 && std::ranges::any_of(steps, [](const StepStudy& step) {
            return std::ranges::all_of(step.lists, [](const ListStudy& list) {
                return std::ranges::none_of(list.operators, &OperatorStudy::is_pair);
            });
        });
    if (unpaired)
        notes.push_back("no GEMM is next to a collective that it depends on: no schedule can cut a pair");
    return notes;
}

void take_training_libraries(StepRequest& request, const ConfigFolder& folder, StudyOptions& options,
                             Model& model) {
    const DType dtype = request.dtype;
    const std::string key = "device.gemm_library", grouped = "device.grouped_library";
    Json& what_if = options.run.what_if;
    const std::optional<ConfigFile> file = folder.machine_files(options.run.topology).calibration;
    if (!file || what_if.contains(key)) return;
    const auto has = [&](const std::string& fit) { return file->json.contains(Json::json_pointer(fit)); };
    if (has("/gemm_libraries/torch_linear/" + name_of(dtype))) {
        what_if[key] = "torch_linear";
        request.gemms_cast = true;
        model.notes.push_back("GEMMs in " + name_of(dtype) +
                              " by torch_linear, which quantises A (--what-if device.gemm_library=mixed: "
                              "quantised before)");
    }
    if (!model.has_experts() || what_if.contains(grouped) || !has("/moe/" + kernel_format(dtype) + "_torch"))
        return;
    what_if[grouped] = "torch";
    model.notes.emplace_back("experts' GEMMs by torch (--library mixed: those of servers' fused layers)");
}

}  // namespace overlap
