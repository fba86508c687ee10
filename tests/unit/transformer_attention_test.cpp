// Attention that is not the same everywhere: latent attention over a tensor-parallel group, and windows in some layers.
#include "tests/models.hpp"

namespace overlap::test::transformer_attention_test {
namespace {

using Gemms = std::vector<Gemm>;
using Found = std::map<std::string, std::string>;

std::vector<Operator> deepseek(Phase phase, Parallelism spread) {
    return layer_operators(shipped_model("deepseek_v3"), step_of(phase, 4096, 2048, spread), false);
}

const StreamingWork& kernel(const std::vector<Operator>& operators, const std::string& name) {
    return std::get<StreamingWork>(called(operators, name).work);
}

}  // namespace

TEST_CASE("latent attention on one of 8 GPUs, by hand") {
    // Latents of 1536 and 512 + 64 from 7168, on every GPU: of its 4096 / 8 rows with sequence parallelism, else of all. Out
    // of them for 128 / 8 heads: queries of 192, keys and values of 128 + 128.
    const auto layer = [](std::int64_t rows) {
        return Gemms{{"qkv_latent", rows, 2112, 7168},       {"queries", 4096, 16 * 192, 1536},
                     {"keys_values", 4096, 16 * 256, 512},   {"attention_out", 4096, 7168, 16 * 128},
                     {"gate_up", 4096, 2 * 18432 / 8, 7168}, {"down", 4096, 7168, 18432 / 8}};
    };
    CHECK(gemms_of(deepseek(Phase::forward, sequence)) == layer(512));
    CHECK(gemms_of(deepseek(Phase::forward, tensor)) == layer(4096));
    // Gathered are the latents, each before its projection, and the part of the keys that is rotated: not the 7168 columns.
    const std::int64_t hidden = 4096LL * 7168 * 2, queries = 4096LL * 1536 * 2, keys = 4096LL * 512 * 2,
                       rotated = 4096LL * 64 * 2;
    const Found forward{{"queries_gather", bytes("all_gather", queries)},
                        {"keys_values_gather", bytes("all_gather", keys)},
                        {"rotary_gather", bytes("all_gather", rotated)},
                        {"attention_reduce", bytes("reduce_scatter", hidden)},
                        {"mlp_gather", bytes("all_gather", hidden)},
                        {"mlp_reduce", bytes("reduce_scatter", hidden)}};
    CHECK(collectives_of(deepseek(Phase::forward, sequence)) == forward);
    CHECK(collectives_of(deepseek(Phase::decode, sequence)) == forward);
    CHECK(collectives_of(deepseek(Phase::forward, tensor)) ==
          Found{{"attention_reduce", bytes("all_reduce", hidden)},
                {"mlp_reduce", bytes("all_reduce", hidden)}});
}

TEST_CASE("training of latent attention on one of 8 GPUs, by hand") {
    const std::int64_t hidden = 4096LL * 7168 * 2, queries = 4096LL * 1536 * 2, keys = 4096LL * 512 * 2,
                       rotated = 4096LL * 64 * 2;
    // Gathers come back as sums; gathered rows are gathered again for the weights' gradients. Each GPU has a gradient of the
    // projections into the latents from its own rows: 7168 · 2112 numbers are summed.
    CHECK(collectives_of(deepseek(Phase::training, sequence)) ==
          Found{{"queries_gather", bytes("all_gather", queries)},
                {"queries_gather_grad", bytes("reduce_scatter", queries)},
                {"queries_regather", bytes("all_gather", queries)},
                {"keys_values_gather", bytes("all_gather", keys)},
                {"keys_values_gather_grad", bytes("reduce_scatter", keys)},
                {"keys_values_regather", bytes("all_gather", keys)},
                {"rotary_gather", bytes("all_gather", rotated)},
                {"rotary_gather_grad", bytes("reduce_scatter", rotated)},
                {"qkv_latent_wgrad_reduce", bytes("all_reduce", 7168LL * 2112 * 2)},
                {"attention_reduce", bytes("reduce_scatter", hidden)},
                {"attention_reduce_grad", bytes("all_gather", hidden)},
                {"mlp_gather", bytes("all_gather", hidden)},
                {"mlp_gather_grad", bytes("reduce_scatter", hidden)},
                {"gate_up_regather", bytes("all_gather", hidden)},
                {"mlp_reduce", bytes("reduce_scatter", hidden)},
                {"mlp_reduce_grad", bytes("all_gather", hidden)}});
    // All rows everywhere: the gradients of what all heads read are summed, and those of the latents' weights are alike.
    CHECK(collectives_of(deepseek(Phase::training, tensor)) ==
          Found{{"queries_dgrad_reduce", bytes("all_reduce", queries)},
                {"keys_values_dgrad_reduce", bytes("all_reduce", keys)},
                {"attention_reduce", bytes("all_reduce", hidden)},
                {"gate_up_dgrad_reduce", bytes("all_reduce", hidden)},
                {"mlp_reduce", bytes("all_reduce", hidden)}});
    // Adam has the whole projections into the latents on every GPU, and an eighth of the rest: 14 bytes read for each.
    const double latents = 7168.0 * 2112, rest = 1536 + 512 + 1536.0 * 128 * 192 + 512.0 * 128 * 256 +
                                                 16384.0 * 7168 + 2 * 7168 + 3 * 7168.0 * 18432;
    CHECK(kernel(deepseek(Phase::training, sequence), "adam").read.si() ==
          Approx(14 * (latents + rest / 8)).epsilon(1e-12));
}

TEST_CASE("layers with a window cost what it leaves, by hand") {
    const Model gemma = shipped_model("gemma3_27b");
    const auto attention = [&](Phase phase, std::int64_t tokens, bool windowed) {
        const StepShape step = step_of(phase, tokens, 8192, alone);
        const auto list = overlap::layer_operators(gemma, step, kind_of(gemma, false, windowed));
        return kernel(list, "attention");
    };
    // QK and PV: 2 · 2 · 32 heads · 128. Of 8192 tokens the first 1024 attend to those before, the others to 1024 each.
    const double pair = 4 * 32 * 128;
    CHECK(attention(Phase::prefill, 8192, true).flops.si() == pair * (1024.0 * 1025 / 2 + 7168.0 * 1024));
    CHECK(attention(Phase::prefill, 8192, false).flops.si() == pair * (8192.0 * 8193 / 2));
    // Each of 64 sequences reads 1024 keys and values of 16 heads, or 8192, and its 32 queries.
    CHECK(attention(Phase::decode, 64, true).read.si() == 64 * (1024 * 16 * 256 + 32 * 128) * 2.0);
    CHECK(attention(Phase::decode, 64, false).read.si() == 64 * (8192.0 * 16 * 256 + 32 * 128) * 2);
    // A step: 52 layers with the window and 10 without.
    const double gemms = 2 * 8192 * (5376.0 * 64 * 128 + 4096.0 * 5376 + 3 * 5376.0 * 21504);
    CHECK(model_flops(gemma, step_of(Phase::prefill, 8192, 8192, alone)).si() ==
          Approx(62 * gemms + 52 * pair * (1024.0 * 1025 / 2 + 7168.0 * 1024) +
                 10 * pair * 8192.0 * 8193 / 2 + 2 * 5376.0 * 262208)
              .epsilon(1e-12));
    // Norms behind attention and MLP: 4096 / 8 rows of 5376 in and out.
    const auto layer = layer_operators(gemma, step_of(Phase::forward, 4096, 4096, sequence), false);
    for (const char* name : {"attention_post_norm", "mlp_post_norm"})
        CHECK(kernel(layer, name).read.si() == 512 * 5376 * 2);
    // Gemma 2 limits its logits: 4096 tokens by 256000 / 8.
    CHECK(kernel(head_operators(shipped_model("gemma2_9b"), step_of(Phase::forward, 4096, 4096, sequence)),
                 "logits_cap")
              .read.si() == 4096.0 * 32000 * 2);
}

TEST_CASE("memory that a GPU holds at least, by hand") {
    const Model llama =
        shipped_model("llama3_8b");  // norms are split like all weights; the last norm is left out
    const double weights = 8'030'261'248 - 4096;
    CHECK(least_memory(llama, step_of(Phase::forward, 4096, 4096, alone)).si() == 2 * weights);
    CHECK(least_memory(llama, step_of(Phase::forward, 4096, 4096, tensor)).si() == Approx(2 * weights / 8));
    CHECK(least_memory(llama, step_of(Phase::training, 4096, 4096, data)).si() == 16 * weights);
    CHECK(least_memory(llama, step_of(Phase::training, 4096, 4096, {8, 1, 1, 8, false, true})).si() ==
          Approx(16 * weights / 8));
    // 64 contexts of 8192 tokens, of which one of 8 key heads is on a GPU: 128 for the key, 128 for the value, and 4 queries.
    CHECK(least_memory(llama, step_of(Phase::decode, 64, 8192, tensor)).si() ==
          Approx(2 * weights / 8 + 32 * 64 * (8192.0 * 256 + 4 * 128) * 2));
    // Gemma 3 keeps 1024 tokens in 52 layers; 2 key heads and 4 query heads of 128 on a GPU.
    const Model gemma = shipped_model("gemma3_27b");
    CHECK(least_memory(gemma, step_of(Phase::decode, 64, 8192, tensor)).si() ==
          Approx(2 * 27'009'340'928.0 / 8 + 64 * 2 * (52 * 1024.0 * 512 + 10 * 8192.0 * 512 + 62 * 512)));
}

}  // namespace overlap::test::transformer_attention_test
