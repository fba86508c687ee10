#include "sim/transformer/step_study.hpp"

#include <algorithm>

#include "sim/core/ranges.hpp"
#include "sim/run/run.hpp"
#include "sim/transformer/operators.hpp"
#include "sim/transformer/pipeline_order.hpp"

namespace overlap {
namespace {

/// The lists of a micro-batch, those of each pass in the order of the kinds of layers, then the head.
struct PassLists {
    std::vector<ListStudy> forward, both;
    std::vector<ListStudy> last;      ///< as `both`, with sums of gradients and Adam
    std::vector<ListStudy> together;  ///< as `both`, of two micro-batches; empty unless dualpipe
};

/// Without overlap, or with it.
struct Choice {
    Seconds StudyTimes::*of_list;
    Seconds OperatorStudy::*of_operator;
};
constexpr Choice in_turn{&StudyTimes::whole, &OperatorStudy::whole},
    overlapped{&StudyTimes::cut, &OperatorStudy::cut};

void add(const PassLists& lists, std::size_t list, const Choice& choice, StageTimes& stage) {
    const Seconds forward = lists.forward[list].*choice.of_list, both = lists.both[list].*choice.of_list;
    stage.forward += forward;
    stage.backward += both - forward;
    // Each list has its own fastest schedules, so the longer one can be as fast.
    stage.last += std::max(lists.last[list].*choice.of_list - both, Seconds());
    if (!lists.together.empty())
        stage.gain += std::max(both - lists.together[list].*choice.of_list, Seconds());
    for (const OperatorStudy& row : lists.both[list].operators)
        if (row.name.ends_with("_wgrad")) stage.weights += row.*choice.of_operator;
}

/// Times of the virtual stages: of their layers, and of the head on the last one.
std::vector<StageTimes> stage_times(const Model& model, const Pipeline& pipeline, const PassLists& lists,
                                    const Choice& choice) {
    const std::vector<std::size_t> kinds = kinds_of_layers(model);
    std::vector<StageTimes> stages;
    auto kind = kinds.begin();
    for (const std::int64_t layers : layers_of_stages(pipeline, model.layers, model.predicting)) {
        StageTimes& stage = stages.emplace_back();
        for (const auto end = kind + layers; kind < end; ++kind) add(lists, *kind, choice, stage);
    }
    const std::size_t head = lists.both.size() - 1;
    add(lists, head, choice, stages.back());
    for (std::int64_t predictor = 0; predictor < model.predicting; ++predictor)
        add(lists, head - 1, choice, stages.back());
    return stages;
}

/// Time of a message from a GPU of the first stage to its neighbour in another.
Seconds time_of_send(Bytes bytes, int stage, const StepShape& step, const StudyOptions& options,
                     Resolver& resolver) {
    if (step.spread.stages == 1) return {};
    const SendWork send{bytes, {0}, {step.spread.gpus / step.spread.stages * stage}};
    RunConfig config = options.run;
    config.origin = "model";
    config.schedule = "serial";
    config.workload = to_json(Workload{"send", "", std::vector<Operator>{{"send", send, {}}}});
    return makespan_of(resolver.resolve(config));
}

/// Adds the sums of gradients over both GPUs that have a stage's weights: either sends one half to be summed, and the
/// sums of the other half. The farthest of these GPUs is taken for all.
void add_sums_of_directions(const Model& model, const StepShape& step, const StudyOptions& options,
                            Resolver& resolver, std::vector<StageTimes>& stages) {
    const int last = step.spread.stages - 1;
    const StageGradients gradients = gradients_of_stage(model, step);
    const Seconds layers = time_of_send(gradients.layers, last, step, options, resolver);
    for (StageTimes& stage : stages) stage.last += layers;
    stages.back().last += time_of_send(gradients.head, last, step, options, resolver);
}

/// `options` with the nodes of one stage only, whose GPUs exchange with no other stage's but by sends; as they are where
/// a stage has parts of nodes, or the network has no such part.
StudyOptions on_one_stage(const StepShape& step, StudyOptions options, Resolver& resolver) {
    RunConfig config = options.run;
    config.origin = "model";
    const int nodes = resolver.machine(config)->topology.nodes(), stages = step.spread.stages;
    if (nodes % stages != 0) return options;
    config.what_if["topology.nodes"] = nodes / stages;
    try {
        if (resolver.machine(config)->topology.gpus() * stages == step.spread.gpus)
            options.run.what_if = config.what_if;
    } catch (const UserError&) {  // networks of which nodes / stages are not a part
    }
    return options;
}

PassLists passes_of(const Model& model, const StepShape& step, const StudyOptions& options,
                    Resolver& resolver) {
    StepShape forward = step, both = step;
    forward.phase = Phase::forward;
    both.training.accumulates = true;
    // How often a GPU runs them. Forward passes are parts of the others.
    const auto lists = [&](const StepShape& shape, const std::string& suffix, std::int64_t times) {
        std::vector<ListStudy> all = lists_of(model, shape);
        for (ListStudy& list : all) {
            list.name += suffix;
            if (shape.training.two_micro_batches) list.workload.list_order = ListOrder::data;
            list.count = times * share(list.count, step.spread.stages);
        }
        return all;
    };
    std::vector<ListStudy> all = lists(forward, "", 0);
    const std::int64_t together = passes_together(step.pipeline), last = step.pipeline.directions();
    append(all, lists(both, "", step.pipeline.micro_batches - last - together));
    append(all, lists(step, " of last micro-batch", last));
    const auto part = static_cast<std::ptrdiff_t>(all.size() / 3);
    if (step.pipeline.order == PipelineOrder::dualpipe) {
        both.training.two_micro_batches = true;
        append(all, lists(both, " of two micro-batches", together));
    }
    all = simulated(std::move(all), options, resolver);
    return {{all.begin(), all.begin() + part},
            {all.begin() + part, all.begin() + 2 * part},
            {all.begin() + 2 * part, all.begin() + 3 * part},
            {all.begin() + 3 * part, all.end()}};
}

/// All layers, one behind the other.
StepStudy study_of_pass(const Model& model, const StepShape& step, const StudyOptions& options,
                        Resolver& resolver) {
    StepStudy result;
    result.lists = simulated(lists_of(model, step), options, resolver);
    for (const ListStudy& list : result.lists) {
        result.whole += static_cast<double>(list.count) * list.whole;
        result.cut += static_cast<double>(list.count) * list.cut;
    }
    return result;
}

/// An iteration in micro-batches, through the stages of a pipeline: each pass of a micro-batch through a layer is
/// simulated as a list, with the schedules that are fastest for it, and the order of the pipeline sets these times one
/// after another (times_of). The last micro-batch sums the gradients while its backward pass runs, and ends with Adam.
/// Lists of the result: of a micro-batch's layers, and of the last one's. Not modelled: what passes of neighbouring
/// layers or stages take from each other, and sends that stages wait for.
StepStudy study_of_iteration(const Model& model, const StepShape& step, const StudyOptions& options,
                             Resolver& resolver) {
    PassLists passes = passes_of(model, step, on_one_stage(step, options, resolver), resolver);
    PipelineStudy pipeline;
    pipeline.send = time_of_send(matrix_size(norm_rows_of(step), model.hidden, output_type(step.dtype)), 1,
                                 step, options, resolver);
    const auto through = [&](const Choice& choice, StageTimes& slowest) {
        std::vector<StageTimes> stages = stage_times(model, step.pipeline, passes, choice);
        if (step.pipeline.directions() == 2) add_sums_of_directions(model, step, options, resolver, stages);
        slowest = *std::ranges::max_element(stages, {},
                                            [](const StageTimes& one) { return one.forward + one.backward; });
        return times_of(step.pipeline, stages, pipeline.send);
    };
    pipeline.whole = through(in_turn, pipeline.slowest_whole);
    pipeline.cut = through(overlapped, pipeline.slowest_cut);
    // Iterations are no shorter if any list takes longer, so its own fastest schedules are the iteration's.
    for (std::vector<ListStudy>* lists : {&passes.both, &passes.last})
        for (ListStudy& list : *lists) {
            if (step.spread.stages == 1) continue;
            const Seconds cut = std::exchange(list.cut, list.whole);
            StageTimes slowest;
            list.gained_of_iteration = through(overlapped, slowest).makespan - pipeline.cut.makespan;
            list.cut = cut;
        }
    StepStudy result;
    result.whole = pipeline.whole.makespan;
    result.cut = pipeline.cut.makespan;
    result.pipeline = pipeline;
    if (step.pipeline.micro_batches > 1) result.lists = passes.both;
    append(result.lists, passes.last);
    append(result.lists, passes.together);
    return result;
}

/// By the SMs of DeepEP's kernels with which the step is fastest.
StepStudy study_by_sms(const Model& model, StepShape step, const StudyOptions& options, Resolver& resolver) {
    step.best_sms = false;
    std::vector<StepStudy> all;
    std::vector<std::pair<std::int16_t, Seconds>> times;
    for (const std::int16_t sms : measured_deepep_sms) {
        step.deepep_sms = sms;
        all.push_back(study(model, step, options, resolver));
        times.emplace_back(sms, all.back().cut);
    }
    StepStudy best = std::move(*std::ranges::min_element(all, {}, &StudyTimes::cut));
    best.by_sms = std::move(times);
    return best;
}

}  // namespace

StepStudy study(const Model& model, const StepShape& step, const StudyOptions& options, Resolver& resolver) {
    if (step.best_sms) return study_by_sms(model, step, options, resolver);
    StepStudy result = step.pipeline.is_trivial() ? study_of_pass(model, step, options, resolver)
                                                  : study_of_iteration(model, step, options, resolver);
    result.shape = step;
    if (step.two_batches) {
        StepShape whole = step;
        whole.two_batches = false;
        result.one_batch = study(model, whole, options, resolver);
    }
    for (const ListStudy& list : result.lists) {
        result.exposed_whole += static_cast<double>(list.count) * list.exposed_whole;
        result.exposed_cut += static_cast<double>(list.count) * list.exposed_cut;
    }
    const auto& peaks = result.lists.front().run->machine->topology.device().peak;
    if (const auto peak = peaks.find(step.dtype); peak != peaks.end()) {
        const Seconds least =
            model_flops(model, step) / (static_cast<double>(step.spread.gpus) * peak->second);
        result.mfu_whole = least / result.whole;
        result.mfu_cut = least / result.cut;
    }
    return result;
}

}  // namespace overlap
