// Configs as they are published: formulas of configs/families.json, structures of families, and what of a file is not read.
#include <catch2/catch.hpp>
#include <fstream>

#include "sim/core/formula.hpp"
#include "sim/core/shown.hpp"
#include "tests/models.hpp"

namespace overlap::test::model_families_test {
namespace {

using Catch::Contains;

Json value(const std::string& formula) {
    const Json names{{"a", 6},
                     {"b", 4},
                     {"no", false},
                     {"word", "x"},
                     {"list", {"x", "y"}},
                     {"blocks", {{{"c", {{"d", 7}}}}}}};
    return Formula(formula).value([&](const std::string& name) { return names.value(name, Json()); });
}

std::string all_notes(const Model& model) {
    return joined(model.notes, "; ");
}

Json shipped_config(const std::string& name) {
    return read_json_file(shipped.find("models", name));
}

/// Numbers of layers by kind.
std::map<std::string, std::int64_t> counts_of(const Model& model) {
    std::map<std::string, std::int64_t> counts;
    for (const LayerKind& kind : layer_kinds(model)) counts[kind.name] = kind.count;
    return counts;
}
using Counts = std::map<std::string, std::int64_t>;

}  // namespace

TEST_CASE("values of formulas") {
    CHECK(value("a + b * 2") == 14);
    CHECK(value("(a + b) * 2 - 1") == 19);
    CHECK(value("a / b") == 1.5);
    CHECK(value("a % b") == 2);
    CHECK(value("none | b") == 4);
    CHECK(value("none * 2 | a + 1") == 7);
    CHECK(value("none * 2").is_null());
    CHECK(value("none > 0 or a == 6") == true);
    CHECK(value("not no and a >= 6") == true);
    CHECK(value("word == 'x' ? 'yes' : 'no'") == "yes");
    CHECK(value("word in list") == true);
    CHECK(value("list[1]") == "y");
    CHECK(value("list[2] | 'end'") == "end");
    CHECK(value("size(list) + size(none)").is_null());
    CHECK(value("blocks[0].c.d") == 7);
    CHECK(value("blocks[0].c.e | 1") == 1);
    for (const char* wrong : {"a +", "(a", "a ? b", "'x", "a b", "[1]"})
        CHECK_THAT(error_of([&] { value(wrong); }), Contains(std::string("formula '") + wrong));
}

TEST_CASE("each family's formulas are without mistakes") {
    int read = 0;
    for (const std::string& name : names_of(shipped_families())) {
        Json config{{"model_type", name}, {"num_experts_per_tok", 1}};
        INFO(name);
        const std::string error = error_of([&] {
            const Model model = model_of(config);
            CHECK_THAT(all_notes(model),
                       Contains("the config leaves out, so as its family has by default: "));
            CHECK(parameters(model) > 0);
        });
        read += error.empty();
        CHECK_THAT(error, !Contains("formula"));
    }
    CHECK(read > 100);
}

TEST_CASE("parameters of structures that differ from Llama's, by hand") {
    // gpt-oss: sinks of 64 heads; biases of queries, keys, values, output, router and each expert's projections.
    const std::int64_t attention =
                           2880LL * (64 + 2 * 8) * 64 + (64 + 2 * 8) * 64 + 64LL * 64 * 2880 + 2880 + 64,
                       expert = 3LL * 2880 * 2880 + 2 * 2880 + 2880;
    CHECK(parameters(shipped_model("gpt_oss_120b")) ==
          36 * (attention + 128 * 2880 + 128 + 128 * expert + 2 * 2880) + 2LL * 201088 * 2880 + 2880);
    // Qwen3-Next: 36 layers of linear attention, 16 heads of keys and 32 of values, of 128 each: queries, keys, values and gate,
    // two numbers a value head, a convolution over 4 tokens of queries, keys and values, two numbers a head, a norm of 128.
    const std::int64_t columns = 2 * 16 * 128 + 2 * 32 * 128 + 2 * 32, channels = 2 * 16 * 128 + 32 * 128;
    const std::int64_t linear = 2048 * columns + 4 * channels + 2 * 32 + 128 + 32LL * 128 * 2048;
    // Attention with a gate as wide as its 16 heads of 256; 512 experts of 512, one for all tokens, with a score of its own.
    const std::int64_t full = 2048LL * (2 * 16 + 2 * 2) * 256 + 2 * 256 + 16LL * 256 * 2048,
                       experts = 512 * 2048 + 513LL * 3 * 2048 * 512 + 2048;
    CHECK(parameters(shipped_model("qwen3_next_80b_a3b")) ==
          36 * linear + 12 * full + 48 * (experts + 2 * 2048) + 2LL * 151936 * 2048 + 2048);
    // DeepSeek-V3.2: V3, and an indexer of 64 heads of 128 from the latent of 1536, a key, weights of its heads, a LayerNorm.
    CHECK(parameters(shipped_model("deepseek_v3_2")) ==
          671'026'419'200 + 61 * (1536LL * 64 * 128 + 7168LL * (128 + 64) + 2 * 128));
    // Nemotron-H 8B: 24 layers of Mamba-2 (8192 wide, 8 groups with states of 128, 128 heads), 4 of attention, 24 of an MLP
    // without gate, each with one norm.
    const std::int64_t mixed = 8192 + 2 * 8 * 128;
    const std::int64_t mamba =
        4096LL * (8192 + mixed + 128) + 4 * mixed + mixed + 3 * 128 + 8192 + 8192LL * 4096;
    CHECK(parameters(shipped_model("nemotron_h_8b")) ==
          24 * mamba + 4 * (4096LL * (32 + 2 * 8) * 128 + 4096LL * 4096) + 24LL * 2 * 4096 * 21504 +
              53 * 4096 + 2LL * 131072 * 4096);
    // Gemma 4 26B-A4B: heads of 512, two of them keys that are the values, too, in 5 of 30 layers; seven norms, a scale of the
    // router's input and one of each expert.
    const std::int64_t local = 2816LL * (16 + 2 * 8) * 256 + 16LL * 256 * 2816 + 2 * 256,
                       global = 2816LL * (16 + 2) * 512 + 16LL * 512 * 2816 + 2 * 512;
    const std::int64_t feed_forward = 3LL * 2816 * 2112 + 128 * 3LL * 2816 * 704 + 128LL * 2816 + 2816 + 128;
    CHECK(parameters(shipped_model("gemma4_26b_a4b")) ==
          25 * local + 5 * global + 30 * (feed_forward + 7 * 2816) + 262144LL * 2816 + 2816);
}

TEST_CASE("kinds of layers of models that mix them") {
    CHECK(counts_of(shipped_model("qwen3_next_80b_a3b")) ==
          Counts{{"scan_layer", 36}, {"attention_layer", 12}});
    CHECK(counts_of(shipped_model("nemotron_h_8b")) ==
          Counts{{"scan_layer", 24}, {"mlp_layer", 24}, {"attention_layer", 4}});
    CHECK(counts_of(shipped_model("llama4_maverick")) ==
          Counts{{"dense_window_layer", 24}, {"experts_window_layer", 12}, {"experts_global_layer", 12}});
    CHECK(counts_of(shipped_model("jamba_1_5_mini")) ==
          Counts{{"dense_scan_layer", 12}, {"experts_scan_layer", 16}, {"dense_attention_layer", 4}});
}

TEST_CASE("operators of a layer with a scan on one of 8 GPUs, by hand") {
    const Model model = shipped_model("qwen3_next_80b_a3b");
    const LayerKind scan = layer_kinds(model).front();
    const auto layer = [&](Phase phase) {
        return overlap::layer_operators(model, step_of(phase, 4096, 4096, Parallelism{8, 2, 1, 4, false}),
                                        scan);
    };
    const auto kernel = [](const std::vector<Operator>& operators, const std::string& name) {
        return std::get<StreamingWork>(called(operators, name).work);
    };
    // 1024 tokens; half of 12288 + 64 columns in and of 4096 out.
    const auto prefill = layer(Phase::prefill);
    CHECK(gemms_of(prefill)[0] == Gemm{"scan_in", 1024, 6176, 2048});
    CHECK(gemms_of(prefill)[1] == Gemm{"scan_out", 1024, 2048, 2048});
    // Half of 32 · 128 · 128 numbers of 4 bytes go out and in after every 64 tokens.
    CHECK(kernel(prefill, "scan").read.si() == 1024 * 6176 * 2.0 + 16 * 262144 * 4.0);
    // A decode step does so for each sequence.
    CHECK(kernel(layer(Phase::decode), "scan").written.si() == 1024 * 2048 * 2.0 + 1024 * 262144 * 4.0);
}

TEST_CASE("a model under a new name is read by its keys, with a note") {
    const auto read = [](const std::string& name, const std::string& type) {
        Json config = shipped_config(name);
        config["model_type"] = type;
        const Model model = model_of(config);
        CHECK_THAT(all_notes(model), Contains("model_type '" + type + "' is not known: read like "));
        return parameters(model);
    };
    CHECK(read("llama3_8b", "newcomer") == 8'030'261'248);
    CHECK(read("deepseek_v3", "newcomer_moe") == 671'026'419'200);
    CHECK(read("mixtral_8x7b", "newcomer_moe") == 46'702'792'704);
    CHECK(read("qwen3_next_80b_a3b", "qwen4_next") == parameters(shipped_model("qwen3_next_80b_a3b")));
    CHECK(read("deepseek_v3_2", "newcomer") == parameters(shipped_model("deepseek_v3_2")));
    Json config = shipped_config("llama3_8b");
    config.update({{"model_type", "newcomer"}, {"num_memory_slots", 64}, {"bos_token_id", 128000}});
    CHECK_THAT(all_notes(model_of(config)),
               Contains("keys that are not known, and may change its layers: num_memory_slots"));
}

TEST_CASE("layers that are not known are named, and left out on request") {
    Json config = shipped_config("llama3_8b");
    config["layer_types"] = Json(32, "full_attention");
    for (int layer = 0; layer < 24; ++layer) config["layer_types"][layer] = "linear_attention";
    CHECK_THAT(
        error_of([&] { model_of(config); }),
        Contains("m.json: /layer_types: has 'linear_attention'; allowed are") && Contains("--known-part"));
    const Model known = model_of(config, "m.json", Unread::left_out);
    CHECK_THAT(all_notes(known), Contains("linear_attention layers: 24 of 32 are not read"));
    const std::int64_t attention = 4096LL * (4096 + 2 * 1024) + 4096LL * 4096;
    CHECK(parameters(known) == 8'030'261'248 - 24 * attention);
}

TEST_CASE("the part of a multimodal config that makes text") {
    const Json text = shipped_config("qwen2_7b");
    for (const char* part : {"text_config", "llm_config", "language_config"}) {
        const Json config{{"model_type", "seer"}, {part, text}, {"vision_config", {{"hidden_size", 1024}}}};
        const Model model = model_of(config);
        CHECK(parameters(model) == 7'615'616'512);
        CHECK_THAT(all_notes(model), Contains(std::string("read: ") + part + ", not vision_config"));
    }
    const Json nested{{"model_type", "omni"},
                      {"thinker_config", {{"model_type", "thinker"}, {"text_config", text}}}};
    CHECK(parameters(model_of(nested)) == 7'615'616'512);
    // What the part leaves out, the whole says.
    Json tied = text;
    tied.erase("tie_word_embeddings");
    CHECK(parameters(
              model_of({{"model_type", "seer"}, {"text_config", tied}, {"tie_word_embeddings", true}})) ==
          7'615'616'512 - 152064LL * 3584);
}

TEST_CASE("Python's Infinity and NaN in a config") {
    const TemporaryFolder folder;
    const auto path = folder.path() / "config.json";
    std::string text = shipped_config("nemotron_h_8b").dump();
    text.back() = ',';
    std::ofstream(path)
        << text
        << R"("time_step_limit": [0.0, Infinity], "low": -Infinity, "x": NaN, "note": "NaN is \" Infinity"})";
    CHECK(parameters(named_model(path.string(), shipped)) == parameters(shipped_model("nemotron_h_8b")));
    CHECK(read_model_file(path)["note"] == "NaN is \" Infinity");
    CHECK(read_model_file(path)["time_step_limit"][1].is_null());
}

TEST_CASE("formats of weights by quantization_config") {
    const auto read = [](const Json& quantised) {
        std::vector<std::string> notes;
        const Json config{{"quantization_config", quantised}};
        const std::string name = read_weight_format(ConfigObject(config, "m.json"), notes).name;
        return name + (notes.empty() ? "" : ": " + joined(notes));
    };
    CHECK(read({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}) == "fp8_block");
    CHECK(read({{"quant_method", "fp8"}, {"activation_scheme", "static"}}) == "fp8_tensor");
    CHECK(read({{"quant_method", "mxfp4"}}) == "mxfp4");
    CHECK(read({{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}}) == "int4_weights");
    CHECK(read({{"quant_method", "gptq"}, {"bits", 8}}) == "int8_weights");
    CHECK(read({{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}}) == "nf4");
    CHECK(read({{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}) == "nvfp4");
    const auto groups = [](const Json& weights, const Json& activations) {
        return Json{
            {"quant_method", "compressed-tensors"},
            {"config_groups", {{"group_0", {{"weights", weights}, {"input_activations", activations}}}}}};
    };
    const Json eight{{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}};
    CHECK(read(groups(eight, eight)) == "fp8_tensor");
    CHECK(read(groups({{"num_bits", 8}, {"type", "float"}, {"strategy", "block"}}, eight)) == "fp8_block");
    CHECK(read(groups({{"num_bits", 4}, {"type", "float"}, {"group_size", 16}}, eight)) == "nvfp4");
    CHECK(read(groups({{"num_bits", 4}, {"type", "int"}, {"group_size", 32}}, nullptr)) == "int4_weights");
    CHECK(read(groups({{"num_bits", 8}, {"type", "int"}}, eight)) == "int8");
    CHECK(read({{"quant_method", "spqr"}}) ==
          ": quantization_config of 'spqr' is not read: weights count as --dtype says");
}

TEST_CASE("memory of weights as they are stored, by hand") {
    Json config = shipped_config("llama3_8b");
    config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
    const Model llama = model_of(config);
    StepShape step = step_of(Phase::forward, 4096, 4096, alone);
    step.stored = llama.stored;
    // Embedding and output projection in 2 bytes, the rest in 8 bits and a scale of 32 bits for 128 x 128 weights.
    const double head = 2.0 * 128256 * 4096, layers = 8'030'261'248.0 - head - 4096;
    CHECK(least_memory(llama, step).si() == Approx(2 * head + layers * (1 + 4.0 / 16384)).epsilon(1e-12));
    // gpt-oss: experts in 4.25 bits, attention in 2 bytes, as its file says.
    config = shipped_config("gpt_oss_20b");
    const Model oss = model_of(config);
    step.stored = oss.stored;
    CHECK(oss.stored.only_experts);
    const double experts = 24 * 32 * (3.0 * 2880 * 2880 + 3 * 2880), all = 20'914'757'184.0 - 2880;
    CHECK(least_memory(oss, step).si() == Approx(2 * (all - experts) + experts * 4.25 / 8).epsilon(1e-12));
    // GEMMs of experts read them so, those of attention do not.
    for (const Operator& op : layer_operators(oss, step, layer_kinds(oss).front()))
        if (const auto* gemm = std::get_if<GemmShape>(&op.work))
            CHECK(gemm->weight_bits == (op.name.starts_with("expert_") ? 4.25 : 0));
    // Keys and values in 8 bits are half of what decode reads.
    step = step_of(Phase::decode, 8, 4096, alone);
    const auto read = [&] {
        const std::vector<Operator> ops = layer_operators(llama, step, layer_kinds(llama).front());
        return std::get<StreamingWork>(std::ranges::find(ops, "attention", &Operator::name)->work).read.si();
    };
    const double queries = 2.0 * 8 * 4096, kept = 2.0 * 8 * 4096 * 2 * 8 * 128;
    CHECK(read() == Approx(queries + kept));
    step.stored.fp8_caches = true;
    CHECK(read() == Approx(queries + kept / 2));
}

}  // namespace overlap::test::model_families_test
