// The operators of models' layers: GEMMs, collectives and FLOPs against numbers computed by hand.
#include <catch2/catch.hpp>
#include <tuple>

#include "sim/schedules/listed_pairs.hpp"
#include "tests/models.hpp"

namespace overlap::test::transformer_layers_test {
namespace {

double flops(const std::vector<Operator>& operators) {
    return flops_of(operators).si();
}

constexpr Parallelism sharded{8, 1, 1, 8, false, true};

/// Bytes that it reads and writes.
std::pair<double, double> kernel(const std::vector<Operator>& operators, const std::string& name) {
    const auto& work = std::get<StreamingWork>(called(operators, name).work);
    return {work.read.si(), work.written.si()};
}

}  // namespace

TEST_CASE("GEMMs of a layer on one of 8 GPUs, by hand") {
    const std::int64_t tokens = 4096;
    const auto layer = [&](const std::string& name, Parallelism spread = sequence, bool of_experts = false) {
        return gemms_of(
            layer_operators(shipped_model(name), step_of(Phase::forward, tokens, 2048, spread), of_experts));
    };
    using Gemms = std::vector<Gemm>;
    // qkv: (64 + 2 · 8) heads · 128 / 8 = 1280; attention_out: 8192 / 8 = 1024 deep; gate_up: 2 · 28672 / 8; down: 28672 / 8.
    CHECK(layer("llama3_70b") == Gemms{{"qkv", tokens, 1280, 8192},
                                       {"attention_out", tokens, 8192, 1024},
                                       {"gate_up", tokens, 7168, 8192},
                                       {"down", tokens, 8192, 3584}});
    CHECK(layer("llama3_70b", tensor) == layer("llama3_70b"));
    // (128 + 2 · 8) · 128 / 8 = 2304.
    CHECK(layer("llama3_1_405b") == Gemms{{"qkv", tokens, 2304, 16384},
                                          {"attention_out", tokens, 16384, 2048},
                                          {"gate_up", tokens, 13312, 16384},
                                          {"down", tokens, 16384, 6656}});
    CHECK(layer("llama2_7b") == Gemms{{"qkv", tokens, 1536, 4096},
                                      {"attention_out", tokens, 4096, 512},
                                      {"gate_up", tokens, 2752, 4096},
                                      {"down", tokens, 4096, 1376}});
    // One key head, which every GPU has: (8 / 8 + 2) · 256.
    CHECK(layer("gemma_2b") == Gemms{{"qkv", tokens, 768, 2048},
                                     {"attention_out", tokens, 2048, 256},
                                     {"gate_up", tokens, 4096, 2048},
                                     {"down", tokens, 2048, 2048}});
    // Heads of 128 that are wider together than the model: 64 · 128 = 8192.
    CHECK(layer("qwen3_32b") == Gemms{{"qkv", tokens, 1280, 5120},
                                      {"attention_out", tokens, 5120, 1024},
                                      {"gate_up", tokens, 6400, 5120},
                                      {"down", tokens, 5120, 3200}});
    // No gate: up is 24576 / 8.
    CHECK(layer("gpt_neox_20b") == Gemms{{"qkv", tokens, 2304, 6144},
                                         {"attention_out", tokens, 6144, 768},
                                         {"up", tokens, 3072, 6144},
                                         {"down", tokens, 6144, 3072}});
    CHECK(layer("bert_large", tensor) == Gemms{{"qkv", tokens, 384, 1024},
                                               {"attention_out", tokens, 1024, 128},
                                               {"up", tokens, 512, 1024},
                                               {"down", tokens, 1024, 512}});
    // Each GPU has 4096 / 8 tokens of its own, a copy of attention, and one of 8 experts: 512 · 2 rows on average.
    CHECK(layer("mixtral_8x7b", experts, true) == Gemms{{"qkv", 512, 6144, 4096},
                                                        {"attention_out", 512, 4096, 4096},
                                                        {"router", 512, 8, 4096},
                                                        {"expert_gate_up", 1024, 28672, 4096},
                                                        {"expert_down", 1024, 4096, 14336}});
    // Every GPU has an eighth of each expert: all 4096 · 2 rows, 14336 / 8 columns.
    CHECK(layer("mixtral_8x7b", sequence, true)[3] == Gemm{"expert_gate_up", 8192, 3584, 4096});
    // 8 experts and a shared one of 2048 for each of 512 tokens.
    CHECK(layer("deepseek_v3", experts, true) == Gemms{{"qkv_latent", 512, 1536 + 512 + 64, 7168},
                                                       {"queries", 512, 128 * 192, 1536},
                                                       {"keys_values", 512, 128 * 256, 512},
                                                       {"attention_out", 512, 7168, 16384},
                                                       {"router", 512, 256, 7168},
                                                       {"shared_gate_up", 512, 4096, 7168},
                                                       {"shared_down", 512, 7168, 2048},
                                                       {"expert_gate_up", 4096, 4096, 7168},
                                                       {"expert_down", 4096, 7168, 2048}});
    CHECK(layer("qwen3_235b_a22b", experts, true) == Gemms{{"qkv", 512, (64 + 8) * 128, 4096},
                                                           {"attention_out", 512, 4096, 8192},
                                                           {"router", 512, 128, 4096},
                                                           {"expert_gate_up", 4096, 3072, 4096},
                                                           {"expert_down", 4096, 4096, 1536}});
}

TEST_CASE("bytes of a layer's collectives, by hand") {
    const std::int64_t tokens = 4096;
    using Found = std::map<std::string, std::string>;
    const auto layer = [&](const std::string& name, Parallelism spread, bool of_experts = false,
                           Phase phase = Phase::forward) {
        return collectives_of(
            layer_operators(shipped_model(name), step_of(phase, tokens, 2048, spread), of_experts));
    };
    // Whole operands of tokens · hidden numbers of 2 bytes.
    for (const auto& [name, hidden] :
         {std::pair("llama3_70b", 8192), std::pair("llama3_1_405b", 16384), std::pair("llama2_7b", 4096),
          std::pair("gemma_7b", 3072), std::pair("qwen3_32b", 5120), std::pair("phi3_mini_4k", 3072)}) {
        INFO(name);
        const std::int64_t operand = tokens * hidden * 2;
        CHECK(layer(name, sequence) == Found{{"attention_gather", bytes("all_gather", operand)},
                                             {"attention_reduce", bytes("reduce_scatter", operand)},
                                             {"mlp_gather", bytes("all_gather", operand)},
                                             {"mlp_reduce", bytes("reduce_scatter", operand)}});
        CHECK(layer(name, tensor) == Found{{"attention_reduce", bytes("all_reduce", operand)},
                                           {"mlp_reduce", bytes("all_reduce", operand)}});
        CHECK(layer(name, data).empty());
    }
    // Side by side, attention and MLP are reduced once; two norms have two gathers, one norm has one.
    const std::int64_t neox = tokens * 6144 * 2, phi = tokens * 2560 * 2;
    CHECK(layer("gpt_neox_20b", sequence) == Found{{"attention_gather", bytes("all_gather", neox)},
                                                   {"mlp_gather", bytes("all_gather", neox)},
                                                   {"layer_reduce", bytes("reduce_scatter", neox)}});
    CHECK(layer("phi_2", sequence) == Found{{"attention_gather", bytes("all_gather", phi)},
                                            {"layer_reduce", bytes("reduce_scatter", phi)}});
    // A GPU sends each of its 512 tokens to 2, or 8, experts.
    CHECK(layer("mixtral_8x7b", experts, true) ==
          Found{{"dispatch", bytes("all_to_all", 512 * 2 * 4096 * 2)},
                {"combine", bytes("all_to_all", 512 * 2 * 4096 * 2)}});
    CHECK(layer("deepseek_v3", experts, true) == Found{{"dispatch", bytes("all_to_all", 512 * 8 * 7168 * 2)},
                                                       {"combine", bytes("all_to_all", 512 * 8 * 7168 * 2)}});
    // Backward: mirrored, and the gathered inputs once more; without sequence parallelism inputs' gradients are summed.
    const std::int64_t operand = tokens * 8192 * 2;
    Found trained = layer("llama3_70b", sequence);
    for (const char* name : {"attention_gather_grad", "mlp_gather_grad"})
        trained[name] = bytes("reduce_scatter", operand);
    for (const char* name : {"attention_reduce_grad", "mlp_reduce_grad", "qkv_regather", "gate_up_regather"})
        trained[name] = bytes("all_gather", operand);
    CHECK(layer("llama3_70b", sequence, false, Phase::training) == trained);
    Found summed = layer("llama3_70b", tensor);
    for (const char* name : {"qkv_dgrad_reduce", "gate_up_dgrad_reduce"})
        summed[name] = bytes("all_reduce", operand);
    CHECK(layer("llama3_70b", tensor, false, Phase::training) == summed);
    // Data parallel: 2 bytes for each weight of the layer; of experts, each GPU has its own.
    const std::int64_t llama3_8b = 4096LL * (4096 + 2 * 1024) + 4096LL * 4096 + 3LL * 4096 * 14336 + 2 * 4096;
    CHECK(layer("llama3_8b", data, false, Phase::training) ==
          Found{{"gradient_reduce", bytes("all_reduce", 2 * llama3_8b)}});
    const std::int64_t attention = 4096LL * (4096 + 2 * 1024) + 4096LL * 4096 + 2 * 4096, router = 8 * 4096;
    CHECK(layer("mixtral_8x7b", experts, true, Phase::training)["gradient_reduce"] ==
          bytes("all_reduce", 2 * (attention + router)));
}

TEST_CASE("collectives of groups of 8 GPUs, by hand") {
    constexpr Parallelism four_two{8, 4, 1, 2, true}, two_four{8, 2, 1, 4, true}, spread{8, 2, 4, 4, true};
    const auto listed = [](const std::string& name, Parallelism how, bool of_experts, Phase phase) {
        return layer_operators(shipped_model(name), step_of(phase, 4096, 2048, how), of_experts);
    };
    const auto group = [](const std::vector<Operator>& operators, const std::string& name) {
        const auto& work = std::get<CollectiveWork>(called(operators, name).work);
        return std::tuple(work.operand.si(), work.group.size, work.group.stride);
    };
    // 4096 tokens over 2 data-parallel groups: each four GPUs gather 2048 rows of 8192 numbers of 2 bytes.
    const auto llama = listed("llama3_70b", four_two, false, Phase::training);
    CHECK(group(llama, "attention_gather") == std::tuple(2048.0 * 8192 * 2, 4, 1));
    CHECK(group(llama, "mlp_reduce") == std::tuple(2048.0 * 8192 * 2, 4, 1));
    // qkv: (64 + 2 · 8) · 128 / 4 columns; gate_up: 2 · 28672 / 4.
    CHECK(gemms_of(llama)[0] == Gemm{"qkv", 2048, 2560, 8192});
    CHECK(gemms_of(llama)[2] == Gemm{"gate_up", 2048, 14336, 8192});
    // A fourth of the layer's weights on each GPU, which the GPU four ranks further on has as well; 2 bytes each.
    const double weights = 8192.0 * 10240 + 8192.0 * 8192 + 3 * 8192.0 * 28672 + 2 * 8192;
    CHECK(group(llama, "gradient_reduce") == std::tuple(weights / 4 * 2, 2, 4));
    CHECK(group(listed("llama3_70b", two_four, false, Phase::training), "gradient_reduce") ==
          std::tuple(weights / 2 * 2, 4, 2));
    // Mixtral: 8 experts over 4 neighbours, two on each; tokens of a GPU 4096 / 4 / 2, to 2 experts each.
    const auto mixtral = listed("mixtral_8x7b", spread, true, Phase::training);
    CHECK(group(mixtral, "dispatch") == std::tuple(512.0 * 2 * 4096 * 2, 4, 1));
    const double rest = 4096.0 * (4096 + 2 * 1024) + 4096.0 * 4096 + 2 * 4096 + 8 * 4096,
                 routed = 8 * 3 * 4096.0 * 14336;
    CHECK(std::get<0>(group(mixtral, "gradient_reduce")) == Approx(rest / 2 * 2).epsilon(1e-12));
    CHECK(std::get<1>(group(mixtral, "gradient_reduce")) == 4);
    CHECK(group(mixtral, "expert_gradient_reduce") == std::tuple(routed / 4 * 2, 2, 4));
}

TEST_CASE("bytes of sharded weights of a layer, by hand") {
    constexpr Parallelism both{8, 2, 1, 4, true, true};
    const Model llama = shipped_model("llama3_8b");
    const double w = 4096.0 * 6144 + 4096.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096;  // 218,112,000
    const auto trained = layer_operators(llama, step_of(Phase::training, 65536, 8192, sharded), false);
    // Gathered forward and backward, and scattered, in bf16.
    CHECK(collectives_of(trained) ==
          std::map<std::string, std::string>{{"parameters_gather", bytes("all_gather", 436'224'000)},
                                             {"backward_parameters_gather", bytes("all_gather", 436'224'000)},
                                             {"gradient_reduce", bytes("reduce_scatter", 436'224'000)}});
    for (const std::string when : {"", "backward_"}) {
        CHECK(kernel(trained, when + "parameters_cast") == std::pair(w / 8 * 4, w / 8 * 2));
        CHECK(kernel(trained, when + "parameters_copy_in") == std::pair(w / 8 * 2, w / 8 * 2));
        CHECK(kernel(trained, when + "parameters_copy_out") == std::pair(w * 2, w * 2));
    }
    CHECK(kernel(trained, "gradients_copy_in") == std::pair(w * 2, w * 2));
    CHECK(kernel(trained, "gradients_cast") == std::pair(w / 8 * 2, w / 8 * 4));
    CHECK(kernel(trained, "adam") == std::pair(w / 8 * 16, w / 8 * 12));
    // The next layer's weights are gathered beside this one, and copied out behind it.
    const auto index = [&](const std::string& name) {
        return static_cast<std::size_t>(&called(trained, name) - trained.data());
    };
    CHECK(called(trained, "parameters_gather").needs == std::vector{index("parameters_copy_in")});
    CHECK(called(trained, "attention_norm").needs.empty());
    CHECK(called(trained, "parameters_copy_out").needs ==
          std::vector{index("parameters_gather"), index("residual")});
    CHECK(called(trained, "gradient_reduce").needs == std::vector{index("residual")});
    CHECK(called(trained, "residual_grad").needs == std::vector{index("residual")});
    // Of inference no cast: weights are kept in the type of computation. Tensor parallel: half of the weights.
    const auto forward = layer_operators(llama, step_of(Phase::forward, 65536, 8192, both), false);
    CHECK(collectives_of(forward)["parameters_gather"] == bytes("all_gather", 218'112'000));
    CHECK(std::get<CollectiveWork>(called(forward, "parameters_gather").work).group == RankGroup{4, 2});
    CHECK(kernel(forward, "parameters_copy_in") == std::pair(w / 8 * 2, w / 8 * 2));
    // What is around the layers has its weights gathered before: embedding and output, 2 · 128256 · 4096.
    const auto head = head_operators(llama, step_of(Phase::training, 65536, 8192, sharded));
    CHECK(collectives_of(head)["parameters_gather"] == bytes("all_gather", 2 * 2 * 128256LL * 4096));
    CHECK(called(head, "embedding").needs == std::vector<std::size_t>{3});
}

TEST_CASE("loss and embedding of a vocabulary that GPUs share") {
    // 128256 / 8 = 16032 columns on each GPU, for all 8192 tokens.
    const Model llama = shipped_model("llama3_70b");
    const double tokens = 8192, logits = tokens * 16032;
    const auto trained = head_operators(llama, step_of(Phase::training, 8192, 8192, tensor));
    CHECK(kernel(trained, "embedding") == std::pair(tokens * 8192 * 2, tokens * 8192 * 2));
    CHECK(kernel(trained, "loss") == std::pair(logits * 2, tokens * 2));
    // The gradient of a logit takes its place.
    CHECK(kernel(trained, "loss_grad") == std::pair(logits * 2 + tokens * 2, logits * 2));
    auto sums = collectives_of(trained);
    CHECK(sums["embedding_reduce"] == bytes("all_reduce", 8192LL * 8192 * 2));
    CHECK(sums["loss_max"] == bytes("all_reduce", 8192LL * 4));
    CHECK(sums["loss_sum"] == bytes("all_reduce", 8192LL * 2 * 4));
    // Shares of the tokens are scattered, and their gradients gathered.
    auto shared = collectives_of(head_operators(llama, step_of(Phase::training, 8192, 8192, sequence)));
    CHECK(shared["embedding_reduce"] == bytes("reduce_scatter", 8192LL * 8192 * 2));
    CHECK(shared["embedding_reduce_grad"] == bytes("all_gather", 8192LL * 8192 * 2));
    // One GPU exchanges nothing; what does not train has no loss.
    CHECK(collectives_of(head_operators(llama, step_of(Phase::training, 8192, 8192, alone))).empty());
    for (const Phase phase : {Phase::forward, Phase::prefill, Phase::decode})
        CHECK(std::ranges::none_of(head_operators(llama, step_of(phase, 8192, 8192, tensor)),
                                   [](const Operator& op) { return op.name.starts_with("loss"); }));
}

TEST_CASE("all-reduces that normalise, in decode") {
    const Model llama = shipped_model("llama3_8b");
    StepShape step = step_of(Phase::decode, 64, 4096, tensor);
    const std::vector<Operator> apart = layer_operators(llama, step, false);
    step.decoding.fused_norms = true;
    const std::vector<Operator> fused = layer_operators(llama, step, false);
    CHECK(collectives_of(fused) == collectives_of(apart));
    CHECK(gemms_of(fused) == gemms_of(apart));
    CHECK(fused.size() == apart.size() - 3);
    for (const char* name : {"attention_norm", "mlp_norm", "residual"})
        CHECK(std::ranges::none_of(fused, [&](const Operator& op) { return op.name == name; }));
    // The MLP waits for the all-reduce in place of the norm, and nothing for what is not there.
    const auto needs = [&](const std::string& name) { return called(fused, name).needs; };
    const auto place = [&](const std::string& name) {
        return static_cast<std::size_t>(&called(fused, name) - fused.data());
    };
    CHECK(needs("qkv").empty());
    CHECK(needs("gate_up") == std::vector{place("attention_reduce")});
    // Without an all-reduce, and outside of decode, the kernels are there.
    step.spread = alone;
    CHECK(layer_operators(llama, step, false).size() ==
          layer_operators(llama, step_of(Phase::decode, 64, 4096, alone), false).size());
    step = step_of(Phase::prefill, 4096, 4096, tensor);
    const std::size_t prefill = layer_operators(llama, step, false).size();
    step.decoding.fused_norms = true;
    CHECK(layer_operators(llama, step, false).size() == prefill);
}

TEST_CASE("Adam's moments in bf16") {
    const Model llama = shipped_model("llama3_8b");
    const double weights = static_cast<double>(layer_parameters(llama, llama.shapes.front()));
    StepShape step = step_of(Phase::training, 8192, 8192, alone);
    const auto adam = [&] { return kernel(layer_operators(llama, step, false), "adam"); };
    // A weight of 4 bytes and two moments of 4 are read and written, a gradient of 2 is read, a weight of 2 written.
    CHECK(adam() == std::pair(weights * 14, weights * 14));
    const double wide = least_memory(llama, step).si();
    step.training.moments = DType::bf16;
    CHECK(adam() == std::pair(weights * 10, weights * 10));
    // Weight and gradient of 2 bytes, and 12 or 8.
    CHECK(least_memory(llama, step).si() == Approx(wide * 12 / 16));
    // On a shard, whose gradients are in fp32: 4 + 2 · 2 + 4 read, 4 + 2 · 2 written.
    step.spread = sharded;
    CHECK(kernel(layer_operators(llama, step, false), "adam") ==
          std::pair(weights / 8 * 12, weights / 8 * 8));
}

TEST_CASE("FLOPs of a step, by hand") {
    const double t = 8192;
    // Two for each weight of a GEMM and token; QKᵀ and PV: 2 · 2 · heads · 128 for each pair of tokens, of which a sequence
    // of s has s (s + 1) / 2.
    const double llama_gemms = 8192.0 * 10240 + 8192.0 * 8192 + 3 * 8192.0 * 28672,
                 llama_pairs = t * (t + 1) / 2;
    const double attention = 4 * 64 * 128 * llama_pairs, head = 128256.0 * 8192;
    const Model llama = shipped_model("llama3_70b");
    CHECK(model_flops(llama, step_of(Phase::forward, 8192, 8192, sequence)).si() ==
          Approx(80 * (2 * t * llama_gemms + attention) + 2 * t * head).epsilon(1e-12));
    // Eight sequences of 1024, and half of one more.
    const double short_pairs = 8 * 1024.0 * 1025 / 2 + 512.0 * 513 / 2;
    CHECK(flops(layer_operators(llama, step_of(Phase::forward, 8704, 1024, alone), false)) ==
          Approx(2 * 8704 * llama_gemms + 4 * 64 * 128 * short_pairs).epsilon(1e-12));
    // Backward: twice the GEMMs, 2.5 times attention.
    CHECK(model_flops(llama, step_of(Phase::training, 8192, 8192, sequence)).si() ==
          Approx(80 * (6 * t * llama_gemms + 3.5 * attention) + 6 * t * head).epsilon(1e-12));
    // Only the last token of the sequence has an output.
    CHECK(model_flops(llama, step_of(Phase::prefill, 8192, 8192, sequence)).si() ==
          Approx(80 * (2 * t * llama_gemms + attention) + 2 * head).epsilon(1e-12));
    // One token each with 4096 before it.
    CHECK(model_flops(llama, step_of(Phase::decode, 64, 4096, tensor)).si() ==
          Approx(80 * (2 * 64 * llama_gemms + 4.0 * 64 * 128 * 64 * 4096) + 2 * 64 * head).epsilon(1e-12));
    // A window of 4096: 4096 · 4097 / 2 pairs, then 4096 for each of 4096 tokens.
    const double mistral = 4096.0 * 6144 + 4096.0 * 4096 + 3 * 4096.0 * 14336;
    CHECK(flops(layer_operators(shipped_model("mistral_7b"), step_of(Phase::forward, 8192, 8192, alone),
                                false)) ==
          Approx(2 * t * mistral + 4 * 32 * 128 * (4096.0 * 4097 / 2 + 4096.0 * 4096)).epsilon(1e-12));
    // An encoder attends to all of a sequence.
    const double bert = 4 * 1024.0 * 1024 + 2 * 1024.0 * 4096;
    CHECK(model_flops(shipped_model("bert_large"), step_of(Phase::forward, 4096, 512, data)).si() ==
          Approx(24 * (2 * 4096 * bert + 4 * 16 * 64 * 8 * 512.0 * 512)).epsilon(1e-12));
    // Latent attention decodes in the latents' space: 576 for keys and 512 for values, of 128 heads; queries go into it
    // (128 · 512 a head) and results out of it (512 · 128).
    const double latent = 7168.0 * 2112 + 1536.0 * 128 * 192 + 2 * 128.0 * 128 * 512 + 16384.0 * 7168;
    const double of_expert = 3 * 7168.0 * 2048, router = 7168.0 * 256;
    CHECK(
        flops(layer_operators(shipped_model("deepseek_v3"), step_of(Phase::decode, 64, 4096, alone), true)) ==
        Approx(2 * 64 * (latent + router + 9 * of_expert) + 2.0 * 64 * 4096 * 128 * (576 + 512))
            .epsilon(1e-12));
    // The GPUs together do what one would do alone, but for router and latents, which each has.
    for (const char* name : {"llama3_70b", "qwen3_32b", "gemma_7b", "gpt_neox_20b"})
        for (const Phase phase : {Phase::forward, Phase::training, Phase::prefill, Phase::decode}) {
            const Model model = shipped_model(name);
            CHECK(8 * flops(layer_operators(model, step_of(phase, 4096, 1024, sequence), false)) ==
                  Approx(flops(layer_operators(model, step_of(phase, 4096, 1024, alone), false))));
        }
}

TEST_CASE("bytes of attention, by hand") {
    const auto attention = [](const std::string& name, Phase phase, Parallelism spread) {
        return std::get<StreamingWork>(
            called(layer_operators(shipped_model(name), step_of(phase, 64, 64, spread), false), "attention")
                .work);
    };
    // 8 query heads and one key head of 128 on each GPU, 64 tokens, 2 bytes.
    CHECK(attention("llama3_70b", Phase::prefill, tensor).read.si() == 64 * (8 + 2) * 128 * 2);
    CHECK(attention("llama3_70b", Phase::prefill, tensor).written.si() == 64 * 8 * 128 * 2);
    // Each of 64 sequences has 64 keys and values.
    CHECK(attention("llama3_70b", Phase::decode, tensor).read.si() == 64 * (64 * 2 * 128 + 8 * 128) * 2);
    // Latents of 576, which all heads share; 128 / 8 queries of 576.
    CHECK(attention("deepseek_v3", Phase::decode, tensor).read.si() == 64 * (64 * 576 + 16 * 576) * 2);
    CHECK(attention("deepseek_v3", Phase::decode, tensor).written.si() == 64 * 16 * 512 * 2);
}

TEST_CASE("every gather and reduction of a dense layer is of a pair that schedules can cut") {
    int cases = 0;
    for (const char* name : {"llama3_70b", "gemma_7b", "mistral_7b", "qwen3_8b", "phi3_mini_4k"}) {
        const Model model = shipped_model(name);
        const auto pairs = [&](Phase phase, Parallelism spread) {
            const std::vector<Operator> operators =
                layer_operators(model, step_of(phase, 4096, 2048, spread), false);
            int found = 0;
            for (std::size_t first = 0; first < operators.size(); ++first)
                found += pair_at(operators, first, 8) ? 1 : 0;
            return found;
        };
        INFO(name);
        CHECK(pairs(Phase::forward, sequence) == 4);
        CHECK(pairs(Phase::forward, tensor) == 2);
        CHECK(pairs(Phase::training, sequence) == 8);
        CHECK(pairs(Phase::training, tensor) == 4);
        CHECK(pairs(Phase::training, data) == 0);
        ++cases;
    }
    CHECK(cases == 5);
    const std::vector<Operator> mixtral =
        layer_operators(shipped_model("mixtral_8x7b"), step_of(Phase::forward, 4096, 2048, experts), true);
    int found = 0;
    for (std::size_t first = 0; first < mixtral.size(); ++first) found += pair_at(mixtral, first, 8) ? 1 : 0;
    CHECK(found == 2);
}

}  // namespace overlap::test::transformer_layers_test
