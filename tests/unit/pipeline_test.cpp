// Iterations in micro-batches: closed forms of the published orders, layers of stages, activations.
#include <catch2/catch.hpp>
#include <map>

#include "sim/transformer/layer.hpp"
#include "sim/transformer/pipeline_order.hpp"
#include "sim/transformer/pipeline_times.hpp"
#include "tests/models.hpp"

namespace overlap::test::pipeline_test {

constexpr double forward = 1, backward = 2, weights = 1;

/// Of a pipeline whose virtual stages are alike: together a stage's take `forward` and `backward`.
PipelineTimes times(const Pipeline& pipeline, double send = 0) {
    const auto part = [&](double time) { return Seconds(time / pipeline.chunks); };
    const std::vector<StageTimes> stages(static_cast<std::size_t>(pipeline.virtual_stages()),
                                         {part(forward), part(backward), part(weights), {}});
    return times_of(pipeline, stages, Seconds(send));
}

double idle(const Pipeline& pipeline) {
    const PipelineTimes all = times(pipeline);
    CHECK(all.busy.si() == Approx(static_cast<double>(pipeline.micro_batches) * (forward + backward)));
    return (all.makespan - all.busy).si();
}

TEST_CASE("bubbles of pipelines are those of their papers") {
    const int stages = GENERATE(1, 2, 4, 8);
    const std::int64_t micro_batches = stages * GENERATE(1, 2, 5);
    const double fill = stages - 1;
    INFO(stages << " stages, " << micro_batches << " micro-batches");
    // arXiv 2104.04473, sections 2.2.1 and 2.2.2.
    CHECK(idle({stages, 1, PipelineOrder::one_f_one_b, micro_batches}) ==
          Approx(fill * (forward + backward)));
    for (const int chunks : {2, 3})
        CHECK(idle({stages, chunks, PipelineOrder::interleaved, micro_batches}) ==
              Approx(fill * (forward + backward) / chunks));
    // arXiv 2401.10241, table 2: ZB-H1, whose backward pass is that of the inputs.
    CHECK(idle({stages, 1, PipelineOrder::zero_bubble, micro_batches}) ==
          Approx(fill * (forward + (backward - weights) - weights)));
}

TEST_CASE("bubble of dualpipe is that of its paper") {
    const int stages = GENERATE(2, 4, 8, 16);
    const std::int64_t micro_batches = 2 * stages + GENERATE(0, 2, 20);
    INFO(stages << " stages, " << micro_batches << " micro-batches");
    // arXiv 2412.19437, table 2: (PP/2 − 1) (F&B + B − 3W). Both passes together take as long as one after the other.
    CHECK(idle({stages, 1, PipelineOrder::dualpipe, micro_batches}) ==
          Approx((stages / 2 - 1) * (forward + backward + backward - 3 * weights)));
}

TEST_CASE("passes of both directions together take less") {
    // Two stages, four micro-batches: each stage runs one backward pass beside a forward pass.
    const Pipeline two{2, 1, PipelineOrder::dualpipe, 4};
    CHECK(passes_together(two) == 1);
    const std::vector<StageTimes> stages(2,
                                         {Seconds(1), Seconds(2), Seconds(1), Seconds(0.5), Seconds(0.25)});
    // Of both stages whose weights a GPU has, gradients are summed: one is complete a backward pass before the other.
    CHECK(times_of(two, stages, Seconds()).makespan.si() == Approx(4 * 3 - 0.25 + 0.5));
    const Model model = shipped_model("llama3_8b");
    StepShape step{Phase::training, 8192, 8192};
    const LayerKind kind = layer_kinds(model).front();
    const std::vector<Operator> one = layer_operators(model, step, kind);
    step.training.two_micro_batches = true;
    const std::vector<Operator> separate = layer_operators(model, step, kind);
    REQUIRE(separate.size() == one.size());
    const auto end = std::ranges::find(separate, "residual", &Operator::name) - separate.begin() + 1;
    for (auto op = static_cast<std::size_t>(end); op < separate.size(); ++op)
        for (const std::size_t need : separate[op].needs) CHECK(need >= static_cast<std::size_t>(end));
    CHECK(std::ranges::count(separate, std::vector<std::size_t>(), &Operator::needs) > 1);
}

TEST_CASE("dualpipe holds two stages' weights") {
    const Model model = shipped_model("llama3_8b");
    StepShape step{Phase::training, 8192, 8192};
    step.spread.gpus = 4;
    step.spread.stages = 4;
    step.pipeline = {4, 1, PipelineOrder::one_f_one_b, 8};
    const auto held = [&] { return least_memory(model, step).si(); };
    const double once = held(), around = 16 * 2.0 * 128256 * 4096;
    step.pipeline.order = PipelineOrder::dualpipe;
    CHECK(held() - once == Approx(once - around));
    CHECK(step.pipeline.in_flight() == 5);  // PP + 1
    const StageGradients gradients = gradients_of_stage(model, step);
    CHECK(gradients.layers.si() == Approx((once - around) / 8));  // 2 bytes of 16
    CHECK(gradients.head.si() == Approx(around / 8));
}

TEST_CASE("sends delay what waits for them") {
    // Two stages, one micro-batch: forward and backward of both, and a send each way.
    CHECK(times({2, 1, PipelineOrder::one_f_one_b, 1}, 0.25).makespan.si() == Approx(2 * 3 + 2 * 0.25));
    CHECK(times({1, 1, PipelineOrder::one_f_one_b, 3}, 0.25).makespan.si() == Approx(3 * 3));
}

TEST_CASE("the slowest stage sets the pace") {
    const std::vector<StageTimes> stages{{Seconds(1), Seconds(2)}, {Seconds(2), Seconds(4)}};
    const PipelineTimes all = times_of({2, 1, PipelineOrder::one_f_one_b, 10}, stages, Seconds());
    // Before and after it the first stage passes once through.
    CHECK(all.makespan.si() == Approx(1 + 10 * 6 + 2));
    CHECK(all.busy.si() == Approx(60));
}

TEST_CASE("gradients are summed after the last micro-batch, and no stage waits for those of another") {
    const std::vector<StageTimes> stages(2, {Seconds(1), Seconds(2), {}, Seconds(0.5)});
    const Pipeline two{2, 1, PipelineOrder::one_f_one_b, 4};
    CHECK(times_of(two, stages, Seconds()).makespan.si() == Approx(4 * 3 + 3 + 0.5));
    // Of two chunks of a stage the second's passes hide the first one's sums.
    const std::vector<StageTimes> chunks(4, {Seconds(1), Seconds(2), {}, Seconds(0.5)});
    const Pipeline interleaved{2, 2, PipelineOrder::interleaved, 4};
    CHECK(times_of(interleaved, chunks, Seconds()).makespan.si() == Approx(8 * 3 + 3 + 0.5));
}

TEST_CASE("layers of stages") {
    using Layers = std::vector<std::int64_t>;
    CHECK(layers_of_stages({4, 1}, 8) == Layers{2, 2, 2, 2});
    CHECK(layers_of_stages({2, 2}, 6) == Layers{1, 2, 2, 1});  // as Llama 3.1 405B's 126 on 128
    CHECK(layers_of_stages({4, 1}, 15) == Layers{4, 4, 4, 3});
    CHECK(layers_of_stages({4, 1}, 5) == Layers{1, 2, 1, 1});
}

TEST_CASE("activations under way") {
    CHECK(Pipeline{1, 1, PipelineOrder::one_f_one_b, 7}.in_flight() == 1);
    CHECK(Pipeline{8, 1, PipelineOrder::one_f_one_b, 4}.in_flight() == 4);
    CHECK(Pipeline{8, 1, PipelineOrder::one_f_one_b, 64}.in_flight() == 8);
    CHECK(Pipeline{8, 2, PipelineOrder::interleaved, 64}.in_flight() == Approx(8 + 7.0 / 2));
    const Model model = shipped_model("llama3_8b");
    StepShape step{Phase::training, 8192, 8192};
    const Bytes all = kept_activations(model, step);
    step.training.recompute = Recompute::full;
    const Bytes inputs = kept_activations(model, step);
    // A layer's input is 2 bytes for each of 4096 numbers of a token; around the layers it stays the same.
    const double around = 8192.0 * 2 * (2 * 4096 + 128256);
    CHECK(inputs.si() == Approx(32 * 8192.0 * 2 * 4096 + around));
    // Two norms, sums of both residuals, Q, K, V, rotated, attention, both outputs; gate, up and their product.
    const double numbers = 4096 * (1 + 1.5 + 1.25 + 1 + 1 + 2 + 1 + 1) + 3.0 * 14336;
    CHECK(all.si() == Approx(32 * 8192.0 * 2 * numbers + around));
    // A tensor-parallel GPU has a fourth of all but the sums of both outputs, of which it keeps its rows.
    StepShape shared{Phase::training, 8192, 8192};
    shared.spread = {4, 4};
    shared.spread.sequence = true;
    CHECK(kept_activations(model, shared).si() == Approx(all.si() / 4));
}

TEST_CASE("what is computed again") {
    const Model model = shipped_model("llama3_8b");
    StepShape step{Phase::training, 8192, 8192};
    const auto flops = [&](Recompute recompute) {
        step.training.recompute = recompute;
        return flops_of(layer_operators(model, step, layer_kinds(model).front())).si();
    };
    StepShape forward_step = step;
    forward_step.phase = Phase::forward;
    const std::vector<Operator> pass = layer_operators(model, forward_step, layer_kinds(model).front());
    double attention = 0;
    for (const Operator& op : pass)
        if (op.name == "attention") attention = std::get<StreamingWork>(op.work).flops.si();
    CHECK(attention > 0);
    CHECK(flops(Recompute::full) - flops(Recompute::none) == Approx(flops_of(pass).si()));
    CHECK(flops(Recompute::selective) - flops(Recompute::none) == Approx(attention));
    CHECK(model_flops(model, step).si() > 0);
}

TEST_CASE("training in a narrow type casts what GEMMs read") {
    const Model model = shipped_model("llama3_8b");
    StepShape step{Phase::training, 8192, 8192, DType::fp8};
    step.spread = {2, 2};
    step.spread.sequence = true;
    const std::vector<Operator> list = layer_operators(model, step, layer_kinds(model).front());
    std::map<std::string, double> read;
    for (const Operator& op : list)
        if (op.name.ends_with("_cast")) read[op.name] = std::get<StreamingWork>(op.work).read.si();
    // bf16 numbers: a GPU's rows before a gather, its columns after attention and the activation; then gradients.
    const double rows = 8192;
    CHECK(read == std::map<std::string, double>{{"attention_gather_cast", rows / 2 * 4096 * 2},
                                                {"attention_out_cast", rows * 2048 * 2},
                                                {"mlp_gather_cast", rows / 2 * 4096 * 2},
                                                {"down_cast", rows * 7168 * 2},
                                                {"mlp_reduce_grad_cast", rows / 2 * 4096 * 2},
                                                {"gate_up_dgrad_cast", rows * 14336 * 2},
                                                {"attention_reduce_grad_cast", rows / 2 * 4096 * 2},
                                                {"qkv_dgrad_cast", rows * 3072 * 2}});
    for (const Operator& op : head_operators(model, step))
        if (const auto* gemm = std::get_if<GemmShape>(&op.work)) CHECK(gemm->dtype == DType::bf16);
    // A scale by a tensor's own largest magnitude reads the tensor once more, before the cast that waits for it.
    const auto passes_before_casts = [&] {
        std::map<std::string, double> passes;
        const std::vector<Operator> all = layer_operators(model, step, layer_kinds(model).front());
        for (const Operator& op : all) {
            if (!op.name.ends_with("_cast")) continue;
            const Operator& before = all[op.needs.front()];
            if (before.name != op.name.substr(0, op.name.size() - 5) + "_amax") continue;
            CHECK(op.needs.size() == 1);
            CHECK(std::get<StreamingWork>(before.work).written.si() == 0);
            passes[op.name] = std::get<StreamingWork>(before.work).read.si();
        }
        return passes;
    };
    CHECK(passes_before_casts().empty());
    step.training.recipe = Fp8Recipe::tensorwise;
    CHECK(passes_before_casts() == read);
    step.training.recipe = Fp8Recipe::delayed;
    step.dtype = DType::fp4;  // NVFP4's scales of blocks have a scale of the tensor
    CHECK(passes_before_casts() == read);
    step.dtype = DType::fp8;
    step.training.gemms_cast = true;  // but before a gather the cast is a kernel of its own
    for (const Operator& op : layer_operators(model, step, layer_kinds(model).front())) {
        if (!op.name.ends_with("_cast")) continue;
        const auto& work = std::get<StreamingWork>(op.work);
        const bool gathered =
            op.name.find("gather") != std::string::npos || op.name.find("reduce") != std::string::npos;
        INFO(op.name);
        CHECK(work.read.si() == (gathered ? read[op.name] : 0));
        CHECK(work.written.si() == read[op.name] / (gathered ? 1 : 2));
    }
    step.dtype = DType::bf16;
    CHECK(std::ranges::none_of(layer_operators(model, step, layer_kinds(model).front()),
                               [](const Operator& op) { return op.name.ends_with("_cast"); }));
}

TEST_CASE("parts of sequences: as many FLOPs, keys and values of all") {
    const Model model = shipped_model("llama3_8b");
    StepShape one{Phase::training, 8192, 8192}, four = one;
    four.spread = {4, 1, 1, 4};
    four.spread.context = 4;
    const auto attention = [&](const StepShape& step) {
        const std::vector<Operator> list = layer_operators(model, step, layer_kinds(model).front());
        return std::get<StreamingWork>(std::ranges::find(list, "attention", &Operator::name)->work);
    };
    CHECK(4 * attention(four).flops.si() == Approx(attention(one).flops.si()));
    CHECK(attention(four).attention.tokens == 8192);
    CHECK(4 * attention(four).attention.heads == attention(one).attention.heads);
    const std::vector<Operator> list = layer_operators(model, four, layer_kinds(model).front());
    const auto gather = std::ranges::find(list, "context_gather", &Operator::name);
    REQUIRE(gather != list.end());
    // Keys and values of 8 heads of 128, 2 bytes each.
    CHECK(std::get<CollectiveWork>(gather->work).operand.si() == 8192.0 * 2 * 8 * 128 * 2);
}

}  // namespace overlap::test::pipeline_test
