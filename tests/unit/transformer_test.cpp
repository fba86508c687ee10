// Models read from their configs: numbers of weights computed by hand and as published, and what is refused.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "tests/models.hpp"
#include "tests/sample.hpp"

namespace overlap::test::transformer_test {

using Catch::Contains;

TEST_CASE("parameters of ten models, by hand") {
    // Attention: Q, K, V, output; then the MLP; norms. Embedding and output projection, last norm.
    const std::int64_t llama2_7b =
        32LL * (4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096) + 2LL * 32000 * 4096 + 4096;
    CHECK(parameters(shipped_model("llama2_7b")) == llama2_7b);
    // 8 of 64 heads have keys and values of their own: 8192 / 8 = 1024 columns each.
    const std::int64_t llama3_70b =
        80LL * (8192LL * (8192 + 2 * 1024) + 8192LL * 8192 + 3LL * 8192 * 28672 + 2 * 8192) +
        2LL * 128256 * 8192 + 8192;
    CHECK(llama3_70b == 70'553'706'496);
    CHECK(parameters(shipped_model("llama3_70b")) == llama3_70b);
    // 128 heads of 128, 8 with keys: 1024 columns.
    const std::int64_t llama3_405b =
        126LL * (16384LL * (16384 + 2 * 1024) + 16384LL * 16384 + 3LL * 16384 * 53248 + 2 * 16384) +
        2LL * 128256 * 16384 + 16384;
    CHECK(parameters(shipped_model("llama3_1_405b")) == llama3_405b);
    // Biases of Q, K and V: 3584 + 2 · 512.
    const std::int64_t qwen2_7b =
        28LL * (3584LL * (3584 + 2 * 512) + 3584 + 2 * 512 + 3584LL * 3584 + 3LL * 3584 * 18944 + 2 * 3584) +
        2LL * 152064 * 3584 + 3584;
    CHECK(parameters(shipped_model("qwen2_7b")) == qwen2_7b);
    // 64 heads of 128 from 5120; norms of queries and of keys have 128 weights each.
    const std::int64_t qwen3_32b =
        64LL * (5120LL * (8192 + 2 * 1024) + 8192LL * 5120 + 2 * 128 + 3LL * 5120 * 25600 + 2 * 5120) +
        2LL * 151936 * 5120 + 5120;
    CHECK(parameters(shipped_model("qwen3_32b")) == qwen3_32b);
    // 8 experts and a router; 2 of them for a token.
    const std::int64_t rest = 4096LL * (4096 + 2 * 1024) + 4096LL * 4096 + 2 * 4096 + 4096 * 8,
                       expert = 3LL * 4096 * 14336;
    const std::int64_t around = 2LL * 32000 * 4096 + 4096;
    CHECK(parameters(shipped_model("mixtral_8x7b")) == 32 * (rest + 8 * expert) + around);
    CHECK(active_parameters(shipped_model("mixtral_8x7b")) == 32 * (rest + 2 * expert) + around);
    // Latents of 1536 (queries) and 512 + 64 (keys and values), 128 heads of 128 + 64 and values of 128; three dense layers,
    // 58 with 256 experts of 2048, one shared expert, and a bias of each expert's score.
    const std::int64_t latent = 7168LL * 1536 + 1536 + 1536LL * 128 * 192 + 7168LL * (512 + 64) + 512 +
                                512LL * 128 * (128 + 128) + 128LL * 128 * 7168 + 2 * 7168;
    const std::int64_t deepseek_v3 = 61 * latent + 3 * 3LL * 7168 * 18432 +
                                     58 * (256LL * 7168 + 256 + 257LL * 3 * 7168 * 2048) +
                                     2LL * 129280 * 7168 + 7168;
    CHECK(deepseek_v3 == 671'026'419'200);
    CHECK(parameters(shipped_model("deepseek_v3")) == deepseek_v3);
    // One embedding for both ends; 16 heads of 256.
    CHECK(parameters(shipped_model("gemma_7b")) ==
          28LL * (4LL * 3072 * 4096 + 3LL * 3072 * 24576 + 2 * 3072) + 256000LL * 3072 + 3072);
    // Gemma 2: 16 and 2 · 8 heads of 256 from 3584; four norms.
    CHECK(parameters(shipped_model("gemma2_9b")) ==
          42LL * (3584LL * (16 + 2 * 8) * 256 + 4096LL * 3584 + 3LL * 3584 * 14336 + 4 * 3584) +
              256000LL * 3584 + 3584);
    // Biases everywhere, LayerNorms, learned positions.
    CHECK(parameters(shipped_model("gpt2")) ==
          12 * (768 * 2304 + 2304 + 768 * 768 + 768 + 2 * 768 * 3072 + 3072 + 768 + 4 * 768) +
              (50257 + 1024) * 768 + 2 * 768);
    // A norm of the embeddings of words, positions and types, and a pooler instead of an output projection.
    CHECK(parameters(shipped_model("bert_base")) ==
          12 * (4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768) + (30522 + 512 + 2) * 768 +
              2 * 768 + 768 * 768 + 768);
}

namespace {
// SigLIP of 27 layers for 896 x 896 pixels in patches of 14: attention 4 (1152² + 1152), MLP 2 · 1152 · 4304 + 4304 + 1152,
// two LayerNorms; patches of 3 · 14² with a bias, 64² positions, a LayerNorm.
constexpr std::int64_t siglip = 27LL * (4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152 + 4 * 1152) +
                                3 * 14 * 14 * 1152 + 1152 + 4096 * 1152 + 2 * 1152;
/// Gemma 3's vision tower, with the projection to the model's hidden size and its norm.
constexpr std::int64_t gemma3_vision(std::int64_t hidden) {
    return siglip + 1152 * hidden + 1152;
}
}  // namespace

TEST_CASE("a config of Gemma 3 as published, with what it leaves out") {
    // huggingface.co/google/gemma-3-4b-pt: 8 heads of 256, 4 of them keys, and a vocabulary of 262208 by default.
    const Json published =
        Json::parse(R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
        "mm_tokens_per_image": 256, "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
        "model_type": "gemma3_text", "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024}, "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"}})");
    const Model model = model_of(published);
    // Its published weights have 4,300,079,472 elements.
    CHECK(parameters(model) + gemma3_vision(2560) == 4'300'079'472);
    CHECK(parameters(model) ==
          34LL * (2560LL * (8 + 2 * 4) * 256 + 2048LL * 2560 + 2 * 256 + 3LL * 2560 * 10240 + 4 * 2560) +
              262208LL * 2560 + 2560);
    CHECK(parameters(shipped_model("gemma3_27b")) + gemma3_vision(5376) == 27'432'406'640);
}

TEST_CASE("layers of a kind are those that attend alike") {
    const auto kinds = [](const Json& config) {
        std::map<std::string, std::int64_t> counts;
        for (const LayerKind& kind : layer_kinds(model_of(config))) counts[kind.name] = kind.count;
        return counts;
    };
    using Counts = std::map<std::string, std::int64_t>;
    const auto file = [](const std::string& name) { return read_json_file(shipped.find("models", name)); };
    CHECK(kinds(file("mistral_7b")) == Counts{{"layer", 32}});
    CHECK(kinds(file("deepseek_v3")) == Counts{{"dense_layer", 3}, {"experts_layer", 58}});
    CHECK(kinds(file("gemma2_9b")) == Counts{{"window_layer", 21}, {"global_layer", 21}});
    // Layers 6, 12, … 60 of 62.
    CHECK(kinds(file("gemma3_27b")) == Counts{{"window_layer", 52}, {"global_layer", 10}});
    Json listed = file("gemma2_9b");
    listed["num_hidden_layers"] = 3;
    listed["layer_types"] = {"full_attention", "sliding_attention", "full_attention"};
    CHECK(kinds(listed) == Counts{{"window_layer", 1}, {"global_layer", 2}});
    listed["layer_types"][1] = "linear_attention";
    CHECK_THAT(error_of([&] { kinds(listed); }),
               Contains("m.json: /layer_types: has 'linear_attention'; allowed are"));
    listed["layer_types"] = {"full_attention"};
    CHECK_THAT(error_of([&] { kinds(listed); }), Contains("/layer_types: has 1 layers, the model 3"));
    // Qwen2: the first 21 of 28 layers attend to all tokens, where windows are used at all.
    Json qwen = file("qwen2_7b");
    qwen.update({{"sliding_window", 4096}, {"max_window_layers", 21}, {"use_sliding_window", true}});
    CHECK(kinds(qwen) == Counts{{"window_layer", 7}, {"global_layer", 21}});
    qwen["use_sliding_window"] = false;
    CHECK(kinds(qwen) == Counts{{"layer", 28}});
}

TEST_CASE("every shipped model has as many parameters as were published") {
    // Elements of the published weights.
    const std::map<std::string, std::int64_t> published{{"bert_base", 109'482'240},
                                                        {"bert_large", 335'141'888},
                                                        {"deepseek_v2", 235'741'434'880},
                                                        {"deepseek_v3", 671'026'419'200},
                                                        {"falcon_40b", 41'303'293'952},
                                                        {"falcon_7b", 6'921'720'704},
                                                        {"gemma2_9b", 9'241'705'984},
                                                        {"gemma3_27b", 27'432'406'640 - gemma3_vision(5376)},
                                                        {"gemma_2b", 2'506'172'416},
                                                        {"gemma_7b", 8'537'680'896},
                                                        {"gpt2", 124'439'808},
                                                        {"gpt2_xl", 1'557'611'200},
                                                        {"gpt_neox_20b", 20'554'567'680},
                                                        {"llama2_70b", 68'976'648'192},
                                                        {"llama2_7b", 6'738'415'616},
                                                        {"llama3_1_405b", 405'853'388'800},
                                                        {"llama3_70b", 70'553'706'496},
                                                        {"llama3_8b", 8'030'261'248},
                                                        {"mistral_7b", 7'241'732'096},
                                                        {"mixtral_8x22b", 140'620'634'112},
                                                        {"mixtral_8x7b", 46'702'792'704},
                                                        {"phi3_mini_4k", 3'821'079'552},
                                                        {"phi_2", 2'779'683'840},
                                                        {"qwen2_72b", 72'706'203'648},
                                                        {"qwen1_5_moe_a2_7b", 14'315'784'192},
                                                        {"qwen2_7b", 7'615'616'512},
                                                        {"qwen3_235b_a22b", 235'093'634'560},
                                                        {"qwen3_30b_a3b", 30'532'122'624},
                                                        {"qwen3_32b", 32'762'123'264},
                                                        {"qwen3_8b", 8'190'735'360}};
    // In billions, and those of a token, as model cards and technical reports have them; of multimodal models without the
    // vision tower, of Kimi K2 the elements of its files (its card says 1 T).
    const std::map<std::string, std::pair<double, double>> rounded{{"gpt_oss_120b", {116.8, 5.1}},
                                                                   {"gpt_oss_20b", {20.9, 3.6}},
                                                                   {"qwen3_next_80b_a3b", {80, 3.9}},
                                                                   {"qwen3_5_35b_a3b", {34.7, 3.5}},
                                                                   {"deepseek_v3_2", {671.9, 37.5}},
                                                                   {"kimi_k2", {1026.5, 32.6}},
                                                                   {"llama4_scout", {107.8, 17.2}},
                                                                   {"llama4_maverick", {400, 17.2}},
                                                                   {"glm_4_5", {355, 32}},
                                                                   {"glm_4_5_air", {106, 12}},
                                                                   {"minimax_m2", {230, 10}},
                                                                   {"phi_4", {14.66, 0}},
                                                                   {"mistral_small_24b", {23.57, 0}},
                                                                   {"olmo2_32b", {32.2, 0}},
                                                                   {"command_a", {111, 0}},
                                                                   {"hunyuan_a13b", {80.4, 13}},
                                                                   {"seed_oss_36b", {36.15, 0}},
                                                                   {"nemotron_h_8b", {8.1, 0}},
                                                                   {"granite4_h_small", {32.2, 9}},
                                                                   {"falcon_h1_34b", {33.6, 0}},
                                                                   {"minimax_text_01", {456, 45.9}},
                                                                   {"jamba_1_5_mini", {51.6, 12}},
                                                                   {"dbrx", {132, 36}},
                                                                   {"ernie4_5_300b_a47b", {300, 47}},
                                                                   {"gemma4_26b_a4b", {25.2, 3.8}}};
    for (const std::string& name : shipped.names("models")) {
        INFO(name);
        const Model model = shipped_model(name);
        CHECK(model.notes.size() <= 1);  // that picked tokens are a window, or a scan's chunk is by default
        if (published.contains(name)) {
            CHECK(parameters(model) == published.at(name));
            continue;
        }
        REQUIRE(rounded.contains(name));
        const auto [all, active] = rounded.at(name);
        CHECK(static_cast<double>(parameters(model)) * 1e-9 == Approx(all).epsilon(0.01));
        // Cards count embeddings as they like.
        if (active > 0)
            CHECK(static_cast<double>(active_parameters(model)) * 1e-9 == Approx(active).epsilon(0.2));
    }
    CHECK(shipped.names("models").size() == published.size() + rounded.size());
    CHECK(shipped.names("models").size() >= 45);
}

TEST_CASE("operators need earlier ones, in every phase of every shipped model") {
    int lists = 0;
    for (const std::string& name : shipped.names("models")) {
        const Model model = shipped_model(name);
        for (const Phase phase : {Phase::forward, Phase::training, Phase::prefill, Phase::decode})
            for (const Parallelism& spread :
                 {alone, tensor, sequence, experts, data, Parallelism{8, 2, 4, 4, true},
                  Parallelism{8, 2, 1, 4, false, true}}) {
                const StepShape step = step_of(phase, 4096, 512, spread);
                if (error_of([&] { require_possible(model, step, "x"); }) != "") continue;
                std::vector<std::vector<Operator>> each{head_operators(model, step)};
                for (const LayerKind& kind : layer_kinds(model))
                    each.push_back(overlap::layer_operators(model, step, kind));
                for (const auto& operators : each) {
                    INFO(name);
                    std::set<std::string> names;
                    // The first operator that has the name of another, or needs a later one.
                    std::string wrong;
                    for (std::size_t i = 0; i < operators.size() && wrong.empty(); ++i)
                        if (!names.insert(operators[i].name).second ||
                            std::ranges::any_of(operators[i].needs,
                                                [i](std::size_t need) { return need >= i; }))
                            wrong = operators[i].name;
                    CHECK(wrong == "");
                    ++lists;
                }
            }
    }
    CHECK(lists >= 500);
}

TEST_CASE("models of extreme sizes are counted right or refused") {
    // Sizes from 1 to 1e8, all of them allowed. The sanitized tree also traps an overflow on the way.
    std::mt19937_64 random(63);
    const auto size = [&] {
        return std::llround(std::pow(10, std::uniform_real_distribution<>(0, 8)(random)));
    };
    int read = 0, refused = 0;
    const std::array<Json, 2> published{read_json_file(shipped.find("models", "llama3_8b")),
                                        read_json_file(shipped.find("models", "mixtral_8x7b"))};
    const std::size_t drawn = sampled<std::size_t>(500, 2000);
    for (std::size_t i = 0; i < drawn; ++i) {
        Json json = published[i % 2];
        for (const char* key :
             {"hidden_size", "intermediate_size", "vocab_size", "num_local_experts", "head_dim"})
            if (json.contains(key) || key == std::string("head_dim")) json[key] = size();
        json["num_hidden_layers"] = std::min<std::int64_t>(size(), 100'000);
        json["num_attention_heads"] = json["num_key_value_heads"] = size();
        json["num_experts_per_tok"] = 1;
        Model model;
        if (error_of([&] { model = model_of(json); }) != "") {
            ++refused;
            continue;
        }
        ++read;
        const auto number = [&](const char* key) { return json.value(key, 1.0); };
        const double projections =
            4 * number("hidden_size") * number("num_attention_heads") * number("head_dim");
        CHECK(static_cast<double>(parameters(model)) >= projections * number("num_hidden_layers") * 0.999);
        const StepShape step{Phase::forward, 1'000'000'000, 4096, DType::bf16, {}, 0};
        error_of([&] { require_possible(model, step, "x"); });
    }
    CHECK(read > 100);
    CHECK(refused > 100);
}

TEST_CASE("what a model can't be, or can't be spread over") {
    const auto reading = [](Json change) {
        Json json = read_json_file(shipped.find("models", "llama3_8b"));
        json.update(change);
        return error_of([&] { model_of(json); });
    };
    CHECK(
        reading({{"model_type", "lama"}, {"num_attention_heads", nullptr}})
            .find(
                "m.json: /model_type: is 'lama', a family that is not read (did you mean 'llama'?), and its keys are of no known "
                "structure") == 0);
    CHECK(reading({{"hidden_size", 0}}).find("m.json: /hidden_size: ") == 0);
    CHECK(reading({{"hidden_size", nullptr}}).find("m.json: /hidden_size: ") == 0);
    CHECK(reading({{"num_key_value_heads", 7}}) ==
          "m.json: /num_key_value_heads: is 7, which does not divide the 32 heads");
    CHECK(reading({{"sliding_window", nullptr}, {"torch_dtype", "bfloat16"}}) ==
          "");  // as Hugging Face writes them
    const auto spreading = [](const std::string& name, Phase phase, Parallelism spread,
                              std::int64_t tokens = 4096) {
        return error_of(
            [&] { require_possible(shipped_model(name), step_of(phase, tokens, 512, spread), "x"); });
    };
    CHECK(spreading("llama3_8b", Phase::forward, sequence) == "");
    CHECK(spreading("llama3_8b", Phase::forward, {8, 4, 1, 2, false}) == "");
    CHECK_THAT(spreading("llama3_8b", Phase::forward, {8, 4, 1, 4, false}),
               Contains("--tp 4 and --dp 4 are for 16 GPUs, the topology has 8"));
    CHECK_THAT(spreading("mixtral_8x7b", Phase::forward, {8, 1, 3, 8, false}),
               Contains("--ep 3 does not divide"));
    CHECK_THAT(spreading("llama3_8b", Phase::training, {8, 8, 1, 1, false, true}),
               Contains("--fsdp needs --dp above 1"));
    CHECK_THAT(spreading("llama3_8b", Phase::forward, {8, 1, 1, 1, false}),
               Contains("are for 1 GPUs, the topology has 8"));
    CHECK_THAT(spreading("llama3_8b", Phase::forward, experts), Contains("needs a model with experts"));
    CHECK_THAT(spreading("mixtral_8x7b", Phase::forward, {8, 8, 8, 1, false}),
               Contains("needs --sequence-parallel"));
    CHECK_THAT(
        spreading("qwen2_7b", Phase::forward, tensor),
        Contains("the number of heads (28) can't be spread over 8 GPUs (--tp of 8 GPUs, allowed: 1, 2, 4)"));
    CHECK_THAT(spreading("llama3_8b", Phase::forward, sequence, 4097), Contains("--tokens (4097)"));
    CHECK(spreading("deepseek_v3", Phase::training, sequence) == "");
    CHECK_THAT(spreading("bert_base", Phase::decode, data), Contains("is an encoder"));
}

}  // namespace overlap::test::transformer_test
