#include "sim/transformer/possible.hpp"

#include "sim/core/shown.hpp"
#include "sim/transformer/layer.hpp"

namespace overlap {
namespace {

void require_divides(std::int64_t length, int parts, const std::string& what, const std::string& where) {
    if (length % parts != 0)
        throw UserError(where + ": " + what + " (" + std::to_string(length) + ") can't be spread over " +
                        std::to_string(parts) + " GPUs");
}

/// What of a layer --tp `parts` does not divide; empty if it divides all.
std::string undivided(const LayerShape& layer, int parts) {
    const auto named = [](const char* what, std::int64_t length) {
        return std::string(what) + " (" + std::to_string(length) + ")";
    };
    const std::int64_t heads = layer.attention.heads, keys = layer.attention.kv_heads;
    if (heads % parts != 0) return named("the number of heads", heads);
    if (heads > 0 && keys % parts != 0 && parts % keys != 0) return named("the number of key heads", keys);
    if (layer.scan.inner % parts != 0) return named("the width of a scan", layer.scan.inner);
    if (layer.width % parts != 0) return named("the MLP's width", layer.width);
    return "";
}

std::string undivided(const Model& model, int parts) {
    for (const LayerShape& layer : model.shapes)
        if (std::string what = undivided(layer, parts); !what.empty()) return what;
    return "";
}

/// --cp-comm-type: what its attention can be.
void require_exchange(const Model& model, const StepShape& step, const std::string& where) {
    const Parallelism& spread = step.spread;
    const std::string name =
        where + ": --cp-comm-type " + context_exchange_names[static_cast<std::size_t>(spread.exchange)];
    for (const LayerShape& layer : model.shapes) {
        const AttentionShape& attention = layer.attention;
        if (attention.heads == 0) continue;
        if (spread.exchange == ContextExchange::p2p && (attention.window > 0 || attention.index_heads > 0))
            throw UserError(name + " is for attention to all tokens, but layers of " + model.name +
                            " have a window (allowed: all_gather, a2a)");
        const std::int64_t keys = attention.latent() ? attention.heads : attention.kv_heads;
        if (spread.exchange == ContextExchange::a2a &&
            (keys % spread.tensor != 0 || keys / spread.tensor % spread.context != 0))
            throw UserError(name + " needs a number of key heads that --tp times --cp divides, " +
                            model.name + " has " + std::to_string(keys) + " (allowed: all_gather, p2p)");
    }
    if (spread.exchange != ContextExchange::p2p) return;
    const std::int64_t rows = rows_of(step) * spread.context;
    if (step.sequence % (2 * spread.context) != 0 || rows % step.sequence != 0)
        throw UserError(name + " needs whole sequences in two parts a GPU, not " + std::to_string(rows) +
                        " tokens in sequences of " + std::to_string(step.sequence));
}

void require_iteration(const Model& model, const StepShape& step, const std::string& where) {
    const Pipeline& pipeline = step.pipeline;
    const auto number = [](std::int64_t value) { return std::to_string(value); };
    if (step.phase != Phase::training &&
        (!pipeline.is_trivial() || step.training.recompute != Recompute::none))
        throw UserError(where +
                        ": --pp, --micro-batch, --global-batch and --recompute need --phase training");
    if (pipeline.virtual_stages() > model.layers)
        throw UserError(where + ": --pp " + number(pipeline.stages) + " by --vp " + number(pipeline.chunks) +
                        " needs as many layers, " + model.name + " has " + number(model.layers));
    if (pipeline.last_layers &&
        (pipeline.stages == 1 || pipeline.directions() == 2 ||
         model.layers - model.predicting - *pipeline.last_layers < pipeline.virtual_stages() - 1))
        throw UserError(where + ": --last-stage-layers " + number(*pipeline.last_layers) +
                        " needs --pp above 1, another order than dualpipe, and a layer for each other stage");
    if (model.predicting > 0 && (step.phase != Phase::training || model.encoder))
        throw UserError(where + ": --mtp is for --phase training of models that generate tokens");
    if (step.training.recompute == Recompute::mla_up_proj && !model.latent())
        throw UserError(where + ": --recompute mla_up_proj is for latent attention, which " + model.name +
                        " does not have (allowed: none, selective, full)");
    const bool interleaved = pipeline.order == PipelineOrder::interleaved;
    if (interleaved != (pipeline.chunks > 1))
        throw UserError(where + ": --pipeline interleaved goes with --vp above 1, and no other order does");
    if (interleaved && pipeline.stages == 1)
        throw UserError(where + ": --vp " + number(pipeline.chunks) + " needs --pp above 1");
    if (interleaved && pipeline.micro_batches % pipeline.stages != 0)
        throw UserError(where + ": --pipeline interleaved needs a multiple of --pp " +
                        number(pipeline.stages) + " micro-batches, not " + number(pipeline.micro_batches));
    if (pipeline.order == PipelineOrder::dualpipe &&
        (pipeline.stages % 2 != 0 || pipeline.micro_batches % 2 != 0 ||
         pipeline.micro_batches < 2 * pipeline.stages))
        throw UserError(where +
                        ": --pipeline dualpipe needs an even --pp, and an even number of micro-batches, at "
                        "least 2 x --pp: not --pp " +
                        number(pipeline.stages) + " and " + number(pipeline.micro_batches));
    if (step.spread.context == 1) return;
    if (step.phase == Phase::decode)
        throw UserError(where + ": --cp is for whole sequences, which --phase decode does not have");
    for (const LayerShape& layer : model.shapes)
        if (layer.scan.columns > 0)
            throw UserError(where + ": --cp is for attention, but " + model.name + " has layers with scans");
    require_divides(step.sequence, step.spread.context, "--sequence", where);
    require_exchange(model, step, where);
}

/// --enable-two-batch-overlap: experts that are sent tokens, and sequences for both halves.
void require_halves(const StepShape& step, const std::string& where) {
    const std::string name = where + ": --enable-two-batch-overlap ";
    if (step.spread.experts == 1)
        throw UserError(name + "needs --ep above 1: without it no tokens are sent to experts");
    if (step.decoding.chunk > 0) throw UserError(name + "goes without --mixed, whose prompt is in one half");
    const std::int64_t rows = step.phase == Phase::decode ? sequences_of(step)
                                                          : rows_of(step) * step.spread.context,
                       parts = step.phase == Phase::decode ? 2 : 2 * step.sequence;
    if (rows % parts != 0)
        throw UserError(name + "needs an even number of " +
                        (step.phase == Phase::decode
                             ? "sequences on each GPU, not " + std::to_string(rows)
                             : "sequences on each GPU, not " + std::to_string(rows) +
                                   " tokens in sequences of " + std::to_string(step.sequence)) +
                        (step.pipeline.is_trivial() ? " (--tokens, --sequence)" : " (--micro-batch)"));
}

}  // namespace

void require_possible(const Model& model, const StepShape& step, const std::string& where) {
    const Parallelism& spread = step.spread;
    const auto number = [](int value) { return std::to_string(value); };
    const std::int64_t needed = std::int64_t{spread.tensor} * spread.data * spread.stages;
    if (needed != spread.gpus)
        throw UserError(where + ": --tp " + number(spread.tensor) +
                        (spread.context > 1 ? ", --cp " + number(spread.context) : "") +
                        (spread.stages > 1 ? ", --pp " + number(spread.stages) : "") + " and --dp " +
                        number(spread.data / spread.context) + " are for " + std::to_string(needed) +
                        " GPUs, the topology has " + number(spread.gpus));
    if (spread.gpus / spread.stages % spread.experts != 0)
        throw UserError(where + ": --ep " + number(spread.experts) + " does not divide the " +
                        number(spread.gpus / spread.stages) + " GPUs of the topology" +
                        (spread.stages > 1 ? " that a stage has" : ""));
    require_iteration(model, step, where);
    if ((step.decoding.draft > 0 || step.decoding.chunk > 0) && step.phase != Phase::decode)
        throw UserError(where + ": --draft and --mixed need --phase decode");
    if (step.decoding.accepted < 1 || step.decoding.accepted > 1 + static_cast<double>(step.decoding.draft))
        throw UserError(where + ": --accepted is from 1 to --draft + 1, " +
                        std::to_string(step.decoding.draft + 1));
    for (const LayerShape& layer : model.shapes)
        if (step.decoding.chunk > 0 && layer.attention.latent())
            throw UserError(where + ": --mixed is not for latent attention, whose prompts take other GEMMs");
    if (spread.sharded && spread.data == 1)
        throw UserError(where + ": --fsdp needs --dp above 1: it shares weights among data-parallel GPUs");
    const bool shares_states = spread.zero != Zero::none;
    if (shares_states && (spread.data == 1 || spread.sharded || step.phase != Phase::training))
        throw UserError(
            where +
            ": --zero needs --phase training and --dp above 1, and goes without --fsdp, which shares "
            "all that it shares");
    if (spread.experts > 1 && !model.has_experts())
        throw UserError(where + ": --ep needs a model with experts, which " + model.name + " is not");
    if (step.deepep_sms && spread.experts == 1)
        throw UserError(where +
                        ": --all-to-all needs --ep above 1: without it no tokens are sent to experts");
    if (step.two_batches) require_halves(step, where);
    const bool low_latency = step.deepep_sms == std::int16_t{0};
    if (low_latency && (step.phase == Phase::training || norm_rows_of(step) > most_low_latency_tokens))
        throw UserError(where + ": --all-to-all deepep_low_latency is for inference with at most " +
                        std::to_string(most_low_latency_tokens) + " tokens a GPU (take deepep)");
    if (spread.experts > 1 && spread.tensor > 1 && !spread.sequence)
        throw UserError(
            where + ": --ep beside --tp needs --sequence-parallel, so that each GPU sends tokens of its own");
    if (spread.sequence && spread.tensor == 1 && spread.gpus > 1)
        throw UserError(where + ": --sequence-parallel needs --tp above 1");
    if (step.phase == Phase::decode && model.encoder)
        throw UserError(where + ": " + model.name + " is an encoder, which generates no tokens");
    require_divides(step.tokens, spread.sequence ? spread.gpus / spread.stages : spread.data, "--tokens",
                    where);
    if (const std::string what = undivided(model, spread.tensor); !what.empty()) {
        std::vector<std::string> allowed;
        for (int degree = 1; degree <= spread.gpus; ++degree)
            if (spread.gpus % degree == 0 && undivided(model, degree).empty())
                allowed.push_back(number(degree));
        throw UserError(where + ": " + what + " can't be spread over " + number(spread.tensor) +
                        " GPUs (--tp of " + number(spread.gpus) + " GPUs, allowed: " + joined(allowed) + ")");
    }
    for (const LayerShape& layer : model.shapes) {
        require_divides(layer.experts.count, spread.experts, "the number of experts", where);
        if (spread.experts == 1)
            require_divides(layer.experts.width, spread.tensor, "an expert's width", where);
    }
    try {
        head_operators(model, step);
        for (const LayerKind& kind : layer_kinds(model)) layer_operators(model, step, kind);
        model_flops(model, step);
    } catch (const UserError& error) {
        throw UserError(where + ": " + error.what());
    }
}

}  // namespace overlap
