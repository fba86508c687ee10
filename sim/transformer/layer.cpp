#include "sim/transformer/layer.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/ranges.hpp"
#include "sim/transformer/fused_norms.hpp"
#include "sim/transformer/weights.hpp"

namespace overlap {
namespace {

/// Weights of a layer on one GPU, those of routed experts apart. Every GPU has the projections into latents.
struct LocalWeights {
    double experts = 0, rest = 0;
};

LocalWeights local_weights(const Model& model, const StepShape& step, const LayerShape& layer) {
    const auto all = static_cast<double>(layer_parameters(model, layer)),
               routed = static_cast<double>(routed_parameters(model, layer)),
               latents = static_cast<double>(layer.attention.latent_columns() * model.hidden);
    const int parts = step.spread.experts > 1 ? step.spread.experts : step.spread.tensor;
    return {routed / parts, (all - routed - latents) / step.spread.tensor + latents};
}

std::vector<HeldWeights> held_weights(const Model& model, const StepShape& step, const LayerShape& layer) {
    const LocalWeights weights = local_weights(model, step, layer);
    const Parallelism& spread = step.spread;
    const HeldWeights rest{"", weights.rest, spread.data, spread.data_group()};
    if (spread.experts == 1 || !layer.of_experts())
        return {{"", weights.rest + weights.experts, rest.copies, rest.group}};
    return {rest, {"expert_", weights.experts, spread.expert_copies(), spread.expert_copies_group()}};
}

HeldWeights head_weights(const Model& model, const StepShape& step) {
    const Whole columns = share(model.vocabulary, step.spread.tensor);
    return {"", static_cast<double>(columns * model.embedding_width) * (model.tied || model.encoder ? 1 : 2),
            step.spread.data, step.spread.data_group()};
}

/// Names kinds by what tells them apart: "dense_window_layer".
void name_kinds(std::vector<LayerKind>& kinds) {
    const auto differ = [&](auto what) {
        return std::ranges::any_of(
            kinds, [&](const LayerKind& kind) { return what(kind.shape) != what(kinds.front().shape); });
    };
    const auto windowed = [](const LayerShape& shape) { return shape.attention.window > 0; };
    const auto mixer = [](const LayerShape& shape) -> std::string {
        if (!shape.unread.empty()) return shape.unread + "_";
        if (shape.scan.columns > 0) return shape.attention.heads > 0 ? "mixed_" : "scan_";
        return shape.attention.heads > 0 ? "attention_" : "mlp_";
    };
    const bool experts_differ = differ([](const LayerShape&shape) { return shape.of_experts(); }),
               mixers_differ = differ(mixer), windows_differ = differ(windowed);
    for (LayerKind& kind : kinds) {
        if (experts_differ)
            kind.name += kind.shape.of_experts() ? "experts_" : kind.shape.width > 0 ? "dense_" : "";
        if (mixers_differ) kind.name += mixer(kind.shape);
        if (windows_differ && kind.shape.attention.heads > 0)
            kind.name += windowed(kind.shape) ? "window_" : "global_";
        kind.name += "layer";
        const auto same = std::ranges::count(kinds, kind.name, &LayerKind::name);
        if (same > 1) kind.name += "_" + std::to_string(same);
    }
}

/// Attention, a scan, or both side by side, of what `norm` makes. Returns the operator that makes the rows that they
/// read: a gather, or `norm`.
std::size_t add_mixers(const Model& model, const LayerShape& layer, const StepShape& step, std::size_t norm,
                       OperatorList& list) {
    const bool attends = layer.attention.heads > 0, scans = layer.scan.columns > 0;
    std::size_t input = norm;
    if (attends) input = add_attention(model, layer.attention, step, norm, list);
    const std::size_t attention_out = list.last();
    if (scans && !attends) input = add_gather(step, "attention_gather", model.hidden, norm, list);
    if (scans) add_scan(model, layer.scan, step, input, list);
    if (scans && attends) {
        const Whole made = rows_of(step) * model.hidden;
        list.add("mixers_sum", list.streams(2 * made, made), {attention_out, list.last()});
    }
    return input;
}

/// The MLP, or experts, or both side by side. `norm` makes the rows of this GPU, `input` those that all of a
/// tensor-parallel group read.
void add_feed_forward(const Model& model, const LayerShape& layer, const StepShape& step, std::size_t norm,
                      std::size_t input, OperatorList& list) {
    const bool exchanged = step.spread.experts > 1;
    if (layer.width > 0) add_mlp(model, layer.width, step, input, list);
    if (!layer.of_experts()) return;
    const bool both = layer.width > 0;
    if (both && exchanged) add_reduce(step, "dense_reduce", model.hidden, list);
    const std::size_t dense = list.last();
    add_experts(model, layer.experts, step, exchanged ? norm : input, list);
    if (!both) return;
    const Whole made = (exchanged ? norm_rows_of(step) : rows_of(step)) * model.hidden;
    list.add("feed_forward_sum", list.streams(2 * made, made), {dense, list.last()});
}

}  // namespace

void OperatorList::add_cast(const std::string& name, const decltype(Operator::work)& work,
                            std::vector<std::size_t>& needs) {
    const auto* gather = std::get_if<CollectiveWork>(&work);
    const auto* gemm = std::get_if<GemmShape>(&work);
    const auto is_narrow = [&](const CollectiveWork* one) {
        return one != nullptr && one->kind == CollectiveKind::all_gather && one->dtype == dtype_;
    };
    const auto is_gathered = [&](std::size_t need) {
        return is_narrow(std::get_if<CollectiveWork>(&operators_[need].work));
    };
    double numbers = 0;
    if (is_narrow(gather) && !name.ends_with("_regather"))
        numbers = gather->operand / element_size(dtype_) / gather->group.members(cast_on_);
    if (gemm != nullptr && !name.ends_with("_wgrad") && std::ranges::none_of(needs, is_gathered))
        numbers =
            static_cast<double>(gemm->m) * static_cast<double>(gemm->k) * static_cast<double>(gemm->batch);
    if (numbers == 0) return;
    const auto pass = [&](const char* suffix, Bytes read, Bytes written) {
        operators_.push_back({name + suffix, StreamingWork{read, written}, std::move(needs)});
        needs = {last()};
    };
    const Bytes wide = numbers * element_size(output_type(dtype_)), narrow = numbers * element_size(dtype_);
    if (scales_by_itself_) pass("_amax", wide, Bytes());
    const bool in_gemm = gemms_cast_ && gemm != nullptr;
    pass("_cast", in_gemm ? Bytes() : wide, in_gemm ? narrow : 2 * narrow);
}

std::size_t add_gather(const StepShape& step, const std::string& name, std::int64_t columns,
                       std::size_t source, OperatorList& list) {
    if (!shards_sequence(step)) return source;
    return list.add(name,
                    list.collective(CollectiveKind::all_gather, rows_of(step), columns, false,
                                    step.spread.tensor_group()),
                    {source});
}

void add_reduce(const StepShape& step, const std::string& name, std::int64_t columns, OperatorList& list) {
    if (step.spread.tensor == 1) return;
    const auto kind = shards_sequence(step) ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    list.add(name, list.collective(kind, rows_of(step), columns, true, step.spread.tensor_group()));
}

std::vector<std::size_t> kinds_of_layers(const Model& model) {
    std::vector<std::size_t> shapes, kinds;
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        const std::size_t shape = model.shape_of[static_cast<std::size_t>(layer) % model.shape_of.size()];
        kinds.push_back(place_of(shapes, shape));
        if (kinds.back() == shapes.size()) shapes.push_back(shape);
    }
    return kinds;
}

std::vector<LayerKind> layer_kinds(const Model& model) {
    std::vector<LayerKind> kinds;
    std::int64_t layer = 0;
    for (const std::size_t kind : kinds_of_layers(model)) {
        const std::size_t shape = model.shape_of[static_cast<std::size_t>(layer++) % model.shape_of.size()];
        if (kind == kinds.size()) kinds.push_back({"", 0, model.shapes[shape]});
        ++kinds[kind].count;
    }
    name_kinds(kinds);
    return kinds;
}

std::vector<Operator> layer_operators(const Model& model, const StepShape& whole, const LayerKind& kind) {
    const LayerShape& layer = kind.shape;
    StepShape step = whole;
    step.two_batches = in_two_batches(whole, layer);
    if (step.two_batches) step.tokens /= 2;
    OperatorList list(step);
    list.cast_operands(step);
    const Whole hidden = norm_rows_of(step) * model.hidden;
    const bool exchanged = layer.of_experts() && step.spread.experts > 1;
    const bool parallel = layer.parallel && layer.mixes() && layer.has_mlp();
    std::size_t input = 0, mixed = 0;
    if (layer.mixes()) {
        list.add("attention_norm", list.streams(hidden, hidden), {});
        input = add_mixers(model, layer, step, list.last(), list);
        mixed = list.last();
        if (!parallel) {
            add_reduce(step, "attention_reduce", model.hidden, list);
            if (layer.norms_behind) list.add("attention_post_norm", list.streams(hidden, hidden));
        }
    }
    if (layer.has_mlp()) {
        if (!layer.mixes() || (parallel && layer.norms > 1))
            list.add("mlp_norm", list.streams(hidden, hidden), {});
        else if (!parallel)
            list.add("mlp_norm", list.streams(2 * hidden, 2 * hidden));
        const std::size_t norm = list.last();
        if ((!parallel || layer.norms > 1) && (!exchanged || layer.width > 0))
            input = add_gather(step, "mlp_gather", model.hidden, norm, list);
        add_feed_forward(model, layer, step, norm, input, list);
        if (parallel) {  // both results are added before the reduction
            const Whole made = rows_of(step) * model.hidden;
            list.add("branches_sum", list.streams(2 * made, made), {mixed, list.last()});
        }
        if (!exchanged) add_reduce(step, parallel ? "layer_reduce" : "mlp_reduce", model.hidden, list);
        if (layer.norms_behind) list.add("mlp_post_norm", list.streams(hidden, hidden));
    }
    list.add("residual", list.streams(2 * hidden, hidden));
    std::vector<Operator> all = std::move(list).take();
    if (reduces_normalise(step, layer)) all = without_norms(std::move(all));
    return with_weights(step, std::move(all), held_weights(model, step, layer), WeightsOf::neighbour);
}

namespace {

/// Softmax and cross-entropy of each row's `columns` logits of this GPU: they are read once, and in the backward pass read
/// and replaced by their gradients, as fused kernels do (a lower bound). Where the vocabulary is spread, the largest logit
/// of each row, then the sum of the exponentials and the logit of the row's token go through all-reduces in fp32
/// (NVIDIA/Megatron-LM 0cb4a9c core/fusions/fused_cross_entropy.py).
void add_loss(const StepShape& step, Whole rows, Whole columns, OperatorList& list) {
    list.add("loss", list.streams(rows * columns, rows));
    if (step.spread.tensor == 1) return;
    const auto sum = [&](const char* name, Whole numbers) {
        list.add(name, CollectiveWork{CollectiveKind::all_reduce, matrix_size(rows, numbers, DType::fp32),
                                      DType::fp32, step.spread.tensor_group()});
    };
    sum("loss_max", 1);
    sum("loss_sum", 2);
}

/// Adds the projection of a result and the next token's embedding, side by side, to the input of a layer that predicts
/// further tokens. Its columns are spread over `--tp` (Megatron-Core: MultiTokenPredictionLayer, eh_proj).
void add_projection_of_predictor(const Model& model, const StepShape& step, OperatorList& list) {
    const Whole both = 2 * norm_rows_of(step) * model.hidden;
    list.add("predictor_norm", list.streams(both, both));
    add_gather(step, "predictor_gather", 2 * model.hidden, list.last(), list);
    list.add("predictor_projection",
             list.gemm(rows_of(step), share(model.hidden, step.spread.tensor), 2 * model.hidden));
    if (step.spread.tensor > 1)
        list.add("predictor_output_gather", list.collective(CollectiveKind::all_gather, rows_of(step),
                                                            model.hidden, true, step.spread.tensor_group()));
}

std::vector<Operator> operators_around(const Model& model, const StepShape& given, bool of_predictor) {
    StepShape step = given;
    step.two_batches = false;
    // Megatron-Core and TransformerEngine's recipes train the layers in a narrow type, not what is around them.
    if (casts_operands(step)) step.dtype = output_type(step.dtype);
    step.stored = {};
    OperatorList list(step);
    const Whole rows = rows_of(step), norm_rows = norm_rows_of(step);
    // Megatron-Core (core/tensor_parallel/layers.py, VocabParallelEmbedding): each GPU looks up the tokens of its part of
    // the vocabulary, and the parts are summed.
    const bool trains = step.phase == Phase::training;
    const Whole looked_up = trains ? Whole(rows) : norm_rows;
    list.add("embedding", list.streams(looked_up * model.hidden, looked_up * model.hidden), {});
    if (trains) add_reduce(step, "embedding_reduce", model.hidden, list);
    if (of_predictor) add_projection_of_predictor(model, step, list);
    list.add("last_norm", list.streams(norm_rows * model.hidden, norm_rows * model.hidden));
    if (!model.encoder) {
        const Whole columns = share(model.vocabulary, step.spread.tensor);
        const bool prefill = step.phase == Phase::prefill;
        const Whole answered = prefill                   ? Whole(share(rows, step.sequence))
                               : step.decoding.chunk > 0 ? Whole(rows - step.decoding.chunk)
                                                         : rows;
        if (shards_sequence(step))
            list.add("output_gather", list.collective(CollectiveKind::all_gather, answered, model.hidden,
                                                      false, step.spread.tensor_group()));
        list.add("output", list.gemm(answered, columns, model.hidden));
        if (model.logits_capped) list.add("logits_cap", list.streams(answered * columns, answered * columns));
        if (trains) add_loss(step, answered, columns, list);
    }
    HeldWeights held = head_weights(model, step);
    if (of_predictor) held.count = static_cast<double>(2 * model.hidden * model.hidden) / step.spread.tensor;
    return with_weights(step, std::move(list).take(), {held}, WeightsOf::itself);
}

}  // namespace

std::vector<Operator> head_operators(const Model& model, const StepShape& step) {
    return operators_around(model, step, false);
}

std::vector<Operator> predictor_operators(const Model& model, const StepShape& step) {
    return operators_around(model, step, true);
}

namespace {

constexpr Bytes unquantised(2);  // bf16
constexpr Bytes gradient(2);     // bf16, as their sums are sent

/// What decode keeps of its sequences in a layer: keys and values, or a scan's state.
Bytes kept_bytes(const Model& model, StepShape step, const LayerKind& kind) {
    step.two_batches = false;
    Bytes sum = kept_state(kind.shape.scan, step);
    for (const Operator& op : layer_operators(model, step, kind))
        if (op.name == "attention" || op.name == "index") sum += std::get<StreamingWork>(op.work).read;
    return sum;
}

/// Results of the operators of a forward pass that its backward pass reads. Gathered rows are gathered again, and of a sum
/// over GPUs only the sum is kept.
Bytes kept_results(const std::vector<Operator>& operators, int gpus, Recompute recompute) {
    std::vector<Bytes> results;
    for (const Operator& op : operators) {
        Bytes& result = results.emplace_back();
        if (recompute == Recompute::mla_up_proj && is_up_projection(op.name)) continue;
        if (const auto* gemm = std::get_if<GemmShape>(&op.work))
            result =
                matrix_size(gemm->m, gemm->n, output_type(gemm->dtype)) * static_cast<double>(gemm->batch);
        if (const auto* kernel = std::get_if<StreamingWork>(&op.work)) result = kernel->written;
        if (op.name == "ring_sum")
            for (const std::size_t need : op.needs) results[need] = Bytes();
        const auto* collective = std::get_if<CollectiveWork>(&op.work);
        if (collective == nullptr || collective->kind == CollectiveKind::all_gather) continue;
        result = collective->operand;
        if (collective->kind == CollectiveKind::reduce_scatter)
            result = result / collective->group.members(gpus);
        if (collective->kind != CollectiveKind::all_to_all)
            for (const std::size_t need : op.needs) results[need] = Bytes();
    }
    return std::accumulate(results.begin(), results.end(), Bytes());
}

}  // namespace

Bytes kept_activations(const Model& model, const StepShape& step) {
    StepShape forward = step;
    forward.phase = Phase::forward;
    forward.two_batches = false;
    Bytes sum;
    for (const LayerKind& kind : layer_kinds(model)) {
        const double layers = static_cast<double>(kind.count) / step.spread.stages;
        sum += layers * (step.training.recompute == Recompute::full
                             ? matrix_size(norm_rows_of(step), model.hidden, output_type(step.dtype))
                             : kept_results(layer_operators(model, forward, kind), step.spread.gpus,
                                            step.training.recompute));
    }
    return step.pipeline.in_flight() * sum +
           kept_results(head_operators(model, forward), step.spread.gpus, step.training.recompute);
}

StageGradients gradients_of_stage(const Model& model, const StepShape& step) {
    const auto share_of = [&](const HeldWeights& weights) {
        const bool shares = step.spread.sharded || step.spread.zero != Zero::none;
        return weights.count / (shares ? weights.copies : 1) * gradient;
    };
    StageGradients sum{{}, share_of(head_weights(model, step))};
    for (const LayerKind& kind : layer_kinds(model))
        for (const HeldWeights& weights : held_weights(model, step, kind.shape))
            sum.layers += static_cast<double>(kind.count) / step.spread.stages * share_of(weights);
    return sum;
}

Bytes least_memory(const Model& model, const StepShape& step) {
    // Mixed precision with Adam (arXiv 1910.02054, section 3.1): weight and gradient of 2 bytes, and the states.
    const Bytes states = optimiser_states(step);
    const bool trains = step.phase == Phase::training;
    const Bytes each = trains ? Bytes(2) + gradient + states : element_size(step.dtype);
    const bool stored = step.stored.is_set() && !trains;
    const Zero zero = trains ? step.spread.zero : Zero::none;
    const Bytes shared = zero == Zero::none ? Bytes() : zero == Zero::states ? states : states + gradient;
    const auto held = [&](const HeldWeights& weights, Bytes size) {
        if (step.spread.sharded) return weights.count / weights.copies * size;
        return weights.count * (size - shared) + weights.count / weights.copies * shared;
    };
    Bytes sum = held(head_weights(model, step), stored ? unquantised : each);
    for (const LayerKind& kind : layer_kinds(model)) {
        const double count =
            static_cast<double>(kind.count) * step.pipeline.directions() / step.spread.stages;
        Bytes of_layer;
        for (const HeldWeights& weights : held_weights(model, step, kind.shape))
            of_layer += held(weights, stored ? Bytes(step.stored.bytes()) : each);
        if (stored && step.stored.only_experts)
            of_layer +=
                local_weights(model, step, kind.shape).rest * (unquantised - Bytes(step.stored.bytes()));
        sum += count * of_layer;
        if (step.phase == Phase::decode) sum += count * kept_bytes(model, step, kind);
    }
    return sum;
}

Flops flops_of(const std::vector<Operator>& operators) {
    Flops sum;
    for (const Operator& op : operators) {
        if (const auto* gemm = std::get_if<GemmShape>(&op.work)) sum += gemm->flops();
        if (const auto* kernel = std::get_if<StreamingWork>(&op.work)) sum += kernel->flops;
    }
    return sum;
}

Flops model_flops(const Model& model, const StepShape& step) {
    StepShape alone = step;
    alone.spread = {};
    alone.training.recompute = Recompute::none;
    Flops sum = flops_of(head_operators(model, alone));
    if (model.predicting > 0)
        sum += static_cast<double>(model.predicting) * flops_of(predictor_operators(model, alone));
    for (const LayerKind& kind : layer_kinds(model))
        sum += static_cast<double>(kind.count) * flops_of(layer_operators(model, alone, kind));
    return static_cast<double>(step.pipeline.micro_batches) * sum;
}

}  // namespace overlap
