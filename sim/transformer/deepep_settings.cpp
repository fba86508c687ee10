#include "sim/transformer/deepep_settings.hpp"

#include <utility>

#include "sim/core/shown.hpp"
#include "sim/report/text_format.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/transformer/layer.hpp"
#include "sim/transformer/possible.hpp"
#include "sim/transformer/step_request.hpp"

namespace overlap {
namespace {

const LayerKind& layer_with_experts(const std::vector<LayerKind>& kinds, const std::string& model) {
    const auto found = std::ranges::max_element(
        kinds, {}, [](const LayerKind& kind) { return kind.shape.of_experts() ? kind.count : 0; });
    if (!found->shape.of_experts())
        throw UserError("command line: --model " + model +
                        " has no experts, between which DeepEP sends tokens");
    return *found;
}

/// Times of the layer with all-to-alls by one library.
struct ByKernels {
    std::string name, setting;
    Seconds in_turn, halves = {};  ///< 0: not judged

    Seconds best() const { return halves > Seconds() ? std::min(in_turn, halves) : in_turn; }
};

class LayerTimes {
public:
    LayerTimes(const Model& model, const RunConfig& config, const ConfigFolder& folder)
        : model_(model), kinds_(layer_kinds(model)), config_(config), resolver_(folder) {
        config_.params = {{"algorithm", "library"}};
    }

    Seconds in_turn(const StepShape& step) { return time(layer(step), "serial", ListOrder::program); }
    Seconds halves(StepShape step) {
        step.two_batches = true;
        return time(layer(step), "concurrent", ListOrder::data);
    }

private:
    /// By DeepEP, or with as many copies of tokens in the order of experts by the vendor's library, which sends a token
    /// once to each expert.
    std::vector<Operator> layer(StepShape step) const {
        const bool by_library = !step.deepep_sms;
        if (by_library) step.deepep_sms = measured_deepep_sms.back();
        auto operators = layer_operators(model_, step, layer_with_experts(kinds_, model_.name));
        for (Operator& op : operators)
            if (auto* work = std::get_if<CollectiveWork>(&op.work); by_library && work != nullptr) {
                const ExpertExchange sent = std::exchange(work->exchange, {});
                work->operand = matrix_size(sent.tokens * sent.choices, sent.hidden, work->dtype);
            }
        return operators;
    }
    Seconds time(std::vector<Operator> operators, const std::string& schedule, ListOrder order) {
        config_.schedule = schedule;
        config_.workload = to_json(Workload{"layer", "", std::move(operators), 0, order});
        return makespan_of(resolver_.resolve_for_numbers(config_));
    }

    const Model& model_;
    std::vector<LayerKind> kinds_;
    RunConfig config_;
    Resolver resolver_;
};

std::string times_row(const std::string& name, Seconds in_turn, Seconds halves) {
    const auto cell = [](Seconds time) { return time > Seconds() ? fixed(to_microseconds(time), 1) : "-"; };
    return "# " + left(name, 20) + right(cell(in_turn), 19) + right(cell(halves), 22) + "\n";
}

}  // namespace

std::string deepep_settings(const std::string& name, const RunConfig& config, std::int64_t tokens,
                            const ConfigFolder& folder) {
    Model model = named_model(name, folder);
    const Machine machine = folder.machine(config.topology, WhatIf(config.what_if, config.origin));
    const int gpus = machine.topology.gpus();
    StepRequest request;
    request.experts = gpus;
    take_formats("", machine, request, model);
    StepShape step = step_of(request, model, spread_of(request, gpus), tokens * gpus);
    require_possible(model, step, config.origin);
    LayerTimes times(model, config, folder);
    const bool divisible = tokens % 2 == 0;
    const auto judge = [&](const std::string& kernels, const std::string& setting) {
        return ByKernels{kernels, setting, times.in_turn(step), divisible ? times.halves(step) : Seconds()};
    };
    std::vector<ByKernels> all{judge(machine.topology.device().collective_library->name, "")};
    for (const std::int16_t sms : measured_deepep_sms) {
        step.deepep_sms = sms;
        all.push_back(
            judge(std::to_string(sms) + " SMs", "deep_ep.Buffer.set_num_sms(" + std::to_string(sms) + ")"));
    }
    if (tokens <= most_low_latency_tokens) {
        step.deepep_sms = 0;
        all.push_back({"low latency", "buffer = deep_ep.Buffer(group, low_latency_mode=True, ...)",
                       times.in_turn(step)});
    }
    const ByKernels& best = *std::ranges::min_element(all, {}, &ByKernels::best);
    std::string text = "# DeepEP, a layer of " + model.name + " on " + machine.topology.name() + ", " +
                       std::to_string(tokens) +
                       " tokens a GPU: " + (best.setting.empty() ? "leave it off" : best.name) +
                       (best.best() == best.halves ? ", in two half batches (two-batch overlap)" : "") +
                       ".\n" + (best.setting.empty() ? "" : best.setting + "\n") +
                       "#                     one after another, us  two half batches, us\n";
    for (const ByKernels& one : all) text += times_row(one.name, one.in_turn, one.halves);
    return text +
           "# Settings: https://github.com/deepseek-ai/DeepEP, README (2026-11). Not counted: the kernel before a normal dispatch that tells the sizes.\n";
}

}  // namespace overlap
