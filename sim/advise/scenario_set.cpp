#include "sim/advise/scenario_set.hpp"

#include <algorithm>
#include <random>

#include "sim/core/input_keys.hpp"

namespace overlap {
namespace {

/// Dimensions of a transformer's layers over the whole model. `experts`: 0 if the feed-forward part is dense;
/// otherwise `ffn` is the width of one expert, and each token goes to `routes` experts.
struct Family {
    std::string name;
    ScenarioSet set;
    std::int64_t hidden, attention, key_values, ffn;
    bool gated;  ///< gate and up projection are one GEMM of 2·ffn columns
    std::int64_t experts, routes;
};

// Source: the models' config.json (hidden_size, heads · head_dim, 2 · key-value heads · head_dim,
// intermediate_size or moe_intermediate_size, num_experts, experts per token); GPT-3: arXiv 2005.14165 table
// 2.1. DeepSeek's attention is latent; its projections count as those of its 128 heads of 128.
const std::vector<Family> families{
    {"llama2_7b", ScenarioSet::fit, 4096, 4096, 8192, 11008, true, 0, 0},
    {"llama3_70b", ScenarioSet::fit, 8192, 8192, 2048, 28672, true, 0, 0},
    {"gpt3_13b", ScenarioSet::fit, 5120, 5120, 10240, 20480, false, 0, 0},
    {"qwen2_5_32b", ScenarioSet::fit, 5120, 5120, 2048, 27648, true, 0, 0},
    {"mixtral_8x7b", ScenarioSet::fit, 4096, 4096, 2048, 14336, true, 8, 2},
    {"deepseek_v2", ScenarioSet::fit, 5120, 16384, 32768, 1536, true, 160, 6},
    {"llama3_8b", ScenarioSet::fit, 4096, 4096, 2048, 14336, true, 0, 0},
    {"llama3_405b", ScenarioSet::fit, 16384, 16384, 2048, 53248, true, 0, 0},
    {"gpt3_175b", ScenarioSet::fit, 12288, 12288, 24576, 49152, false, 0, 0},
    {"qwen2_5_72b", ScenarioSet::fit, 8192, 8192, 2048, 29568, true, 0, 0},
    {"mixtral_8x22b", ScenarioSet::fit, 6144, 6144, 2048, 16384, true, 8, 2},
    {"deepseek_v3", ScenarioSet::fit, 7168, 16384, 32768, 2048, true, 256, 8},
    {"mistral_large", ScenarioSet::judge, 12288, 12288, 2048, 28672, true, 0, 0},
    {"falcon_40b", ScenarioSet::judge, 8192, 8192, 1024, 32768, false, 0, 0},
    {"gemma2_27b", ScenarioSet::judge, 4608, 4096, 4096, 36864, true, 0, 0},
    {"phi3_medium", ScenarioSet::judge, 5120, 5120, 2560, 17920, true, 0, 0},
    {"dbrx", ScenarioSet::judge, 6144, 6144, 2048, 10752, true, 16, 4},
    {"qwen3_235b", ScenarioSet::judge, 4096, 8192, 1024, 1536, true, 128, 8},
};

/// Adds the operators of one family at one number of tokens, for P GPUs, to `pairs`.
class Operators {
public:
    Operators(const Family& family, std::int64_t tokens, DType dtype, int gpus, std::vector<Pair>& pairs)
        : family_(family), tokens_(tokens), gpus_(gpus), dtype_(dtype), pairs_(pairs) {}

    void add_all() {
        column_parallel(family_.attention + family_.key_values);
        row_parallel(family_.attention);
        const std::int64_t up = family_.gated ? 2 * family_.ffn : family_.ffn;
        if (family_.experts == 0) {
            column_parallel(up);
            row_parallel(family_.ffn);
            return;
        }
        if (family_.experts % gpus_ != 0) return;
        // Balanced routing: every GPU gets routes · tokens / P rows for its experts, priced as one GEMM.
        const std::int64_t rows = family_.routes * tokens_ / gpus_;
        add(CollectiveKind::all_to_all, Order::collective_first, ShardDim::m, rows, up, family_.hidden);
        add(CollectiveKind::all_to_all, Order::gemm_first, ShardDim::m, rows, family_.hidden, family_.ffn);
    }

private:
    // With sequence parallelism (arXiv 2205.05198) the forward pass of a column-parallel layer gathers its
    // tokens, its data gradients are reduced and scattered, and its weight gradients gather the tokens, which
    // are then in K. A row-parallel layer is the mirror image.
    void column_parallel(std::int64_t out) {
        if (out % gpus_ != 0) return;
        gathers(out / gpus_, family_.hidden);
        scatters(family_.hidden, out / gpus_);
        gathers_tokens_in_k(out / gpus_);
    }
    void row_parallel(std::int64_t in) {
        if (in % gpus_ != 0) return;
        scatters(family_.hidden, in / gpus_);
        gathers(in / gpus_, family_.hidden);
        gathers_tokens_in_k(in / gpus_);
    }
    void gathers(std::int64_t n, std::int64_t k) {
        add(CollectiveKind::all_gather, Order::collective_first, ShardDim::m, tokens_, n, k);
    }
    void scatters(std::int64_t n, std::int64_t k) {
        add(CollectiveKind::reduce_scatter, Order::gemm_first, ShardDim::m, tokens_, n, k);
    }
    void gathers_tokens_in_k(std::int64_t n) {
        add(CollectiveKind::all_gather, Order::collective_first, ShardDim::k, family_.hidden, n, tokens_);
    }
    void add(CollectiveKind collective, Order order, ShardDim shard, std::int64_t m, std::int64_t n,
             std::int64_t k) {
        const Pair pair{collective, {m, n, k, dtype_}, order, shard};
        const auto same = [&](const Pair& other) {
            return other.gemm == pair.gemm && other.collective == pair.collective &&
                   other.order == pair.order && other.shard_dim == pair.shard_dim;
        };
        if (std::ranges::none_of(pairs_, same)) pairs_.push_back(pair);
    }

    const Family& family_;
    std::int64_t tokens_, gpus_;
    DType dtype_;
    std::vector<Pair>& pairs_;
};

constexpr std::int64_t fewest_tokens = 512, most_tokens = 131'072, most_scenarios = 100'000;

/// Fisher-Yates with mt19937: the standard fixes its numbers, but not those of the distributions.
template <class Value>
void shuffle_the_same_everywhere(std::vector<Value>& values) {
    std::mt19937 random(20'251'210);  // an arbitrary seed that is part of the set's definition
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

/// By ScenarioSet.
using Counts = std::array<std::vector<ScenarioCount>, 2>;

InputKey<Counts> counts_key(std::size_t set) {
    const Json count{{"type", "integer"}, {"minimum", 1}, {"maximum", most_scenarios}};
    return {scenario_set_names[set],
            map_schema("Scenarios by topology, in the order of the tables.", {{"type", "string"}}, count, 1),
            [set](ConfigObject& from, const std::string& key, Counts& to) {
                ConfigObject counts = from.object(key);
                for (const std::string& topology : counts.keys())
                    to[set].push_back(
                        {topology, static_cast<std::size_t>(counts.integer(topology, 1, most_scenarios))});
            }};
}

InputKeys<Counts> count_keys() {
    static const std::vector<InputKey<Counts>> keys{version_key<Counts>("advice_scenarios"),
                                                    text_key<Counts>("description", "What this is."),
                                                    counts_key(0), counts_key(1)};
    return keys;
}

}  // namespace

std::vector<ScenarioCount> scenario_counts(ScenarioSet set, const ConfigFolder& folder) {
    const ConfigFile file = read_config_file(folder.advice_scenarios(), "advice_scenarios");
    ConfigObject root = file.view();
    return read_keys<Counts>(root, count_keys())[static_cast<std::size_t>(set)];
}

Json advice_scenarios_schema() {
    return file_of_keys(
        "Scenarios of the advice",
        "How many scenarios of each topology the static heuristic is fitted to and judged on.", count_keys());
}

std::vector<AdviceScenario> scenarios_of(ScenarioSet set, const std::string& topology,
                                         const ConfigFolder& folder, std::size_t count) {
    const Topology machine = folder.topology(topology);
    std::vector<DType> dtypes{DType::bf16};
    if (folder.calibration(machine.device().name).gemm.contains(DType::fp8)) dtypes.push_back(DType::fp8);
    std::vector<AdviceScenario> scenarios;
    for (const Family& family : families) {
        if (family.set != set) continue;
        std::vector<Pair> pairs;
        for (std::int64_t tokens = fewest_tokens; tokens <= most_tokens; tokens *= 2)
            for (const DType dtype : dtypes)
                Operators(family, tokens, dtype, machine.gpus(), pairs).add_all();
        for (const Pair& pair : pairs) scenarios.push_back({topology, family.name, pair});
    }
    shuffle_the_same_everywhere(scenarios);
    scenarios.resize(std::min(count, scenarios.size()));
    return scenarios;
}

}  // namespace overlap
