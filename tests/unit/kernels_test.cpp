// Attention, grouped GEMMs and MoE layers: formulas against arithmetic by hand, and what reads and writes them.
#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>

#include "models/cost_model_registry.hpp"
#include "models/settled_clock.hpp"
#include "sim/calibrate/measurements/kernel_rows.hpp"
#include "sim/topology/device_launch.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::kernels_test {

using Catch::Contains;
using Rows = std::vector<std::int64_t>;

namespace {

constexpr double no_memory = 1e21;  // a memory rate, bytes/s, that takes no time

/// Units of 1 TFLOP/s; only tiles of 64 rows are worth using.
MoeParameters round_moe() {
    MoeParameters p;
    p.compute_units = 100;
    p.peak_rate = teraflops(100);
    p.efficiency_16 = p.efficiency_32 = p.efficiency_128 = p.efficiency_256 = 0.001;
    p.efficiency_64 = 1;
    p.overlap_exponent = 100;
    p.hbm = p.stream = BytesPerSecond(no_memory);
    return p;
}

AttentionCall call_of(int sequences, int tokens, int heads, int kv_heads) {
    AttentionCall call;
    call.sequences = sequences;
    call.tokens = tokens;
    call.heads = static_cast<std::int16_t>(heads);
    call.kv_heads = static_cast<std::int16_t>(kv_heads);
    call.head_dim = 128;
    return call;
}

/// 10 units, a block of 1 us, a tile as long as another block, 1 + 10 us beside.
PrefillParameters round_prefill() {
    PrefillParameters p;
    p.compute_units = 10;
    p.launch = microseconds(10);
    p.block = p.block_dim = microseconds(0.5);
    p.tile_blocks = 1;
    p.short_block = 1;
    p.overlap_exponent = 1;
    p.query = p.cache = BytesPerSecond(no_memory);
    p.sustained_time = microseconds(1);
    return p;
}

std::string error_of_table(const std::string& text) {
    const TemporaryFolder folder;
    std::ofstream(folder / "rows.csv") << text;
    return error_of([&] {
        const CsvTable table = read_csv_table(folder / "rows.csv");
        KernelRowReader().read(table, 0, kernel_table_of(table).value());
    });
}

}  // namespace

TEST_CASE("tokens go to experts evenly or by a power law, and the busiest GPU is priced") {
    // 3 tokens × 2 choices are 6 rows over 4 experts: one each, and the other two spread.
    CHECK(expert_rows({3, 2, 4, 1, 0}) == Rows{2, 1, 2, 1});
    CHECK(expert_rows({3, 2, 4, 2, 0}) == Rows{2, 1});
    // x has the density 1/x on [1, 0.8 · 125]: its quantiles ¼ and ¾ are 100^¼ = 3.16 and 31.6, 1/11 and 10/11 of 125.
    CHECK(expert_rows({125, 1, 2, 1, 1}) == Rows{11, 114});
    // The busiest of two GPUs of one expert has the greater share.
    CHECK(expert_rows({125, 1, 2, 2, 1}) == Rows{114});
    int cases = 0;
    for (const double exponent : {0.0, 0.5, 1.01, 1.2, 3.0})
        for (const double tokens : {1.0, 7.0, 1000.0}) {
            const Rows rows = expert_rows({tokens, 8, 64, 1, exponent});
            CHECK(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) ==
                  8 * static_cast<std::int64_t>(tokens));
            CHECK(*std::min_element(rows.begin(), rows.end()) >= 0);
            ++cases;
        }
    CHECK(cases == 15);
}

TEST_CASE("tokens that pick their experts at random leave experts out") {
    const auto at_random = [](double tokens, std::int64_t choices, std::int64_t experts) {
        const Rows rows = expert_rows({tokens, choices, experts, 1, 0, true});
        CHECK(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) ==
              choices * static_cast<std::int64_t>(tokens));
        return rows;
    };
    // An expert of 256 is none of the 8 of a token with 31/32, none of 32 tokens' with (31/32)^32 = 0.362: 93 of 256.
    CHECK(counted(at_random(32, 8, 256)).active == Approx(163).margin(1));
    // One token has 8 experts, and each token all of 8.
    CHECK(counted(at_random(1, 8, 256)).active == 8);
    CHECK(at_random(5, 8, 8) == Rows(8, 5));
    // Of many rows they are normal: mean 31,250, deviation 174; the last of 256 quantiles is at 2.886 deviations.
    const Rows many = at_random(1e6, 8, 256);
    CHECK(many.back() == Approx(31'250 + 2.886 * 174).margin(5));
    CHECK(many.front() == Approx(31'250 - 2.886 * 174).margin(5));
}

TEST_CASE("a grouped GEMM pads each expert's rows to tiles and reads the weights of experts with rows") {
    // 64 and 65 rows are 1 + 2 tiles of 64, times 2 of 128 columns. A tile takes 2 · 64 · 128 · (1000 + 24) FLOPs at 1
    // TFLOP/s: 16.777 us, and 6 tiles are less than a wave.
    MoeParameters p = round_moe();
    p.k_fixed = 24;
    const ExpertRows rows = counted(Rows{64, 0, 65});
    CHECK(rows.experts == 3);
    CHECK(rows.active == 2);
    const GroupedEstimate few = estimate_grouped(rows, 256, 1000, {2, 2}, p);
    CHECK(to_microseconds(few.body) == Approx(16.777).epsilon(1e-3));
    CHECK(few.tiles == 6);
    // 2 experts' weights of 256 · 1000, and 129 rows of 1000 in and 256 out, 2 bytes each.
    CHECK(few.hbm_traffic.si() == 2 * (2 * 256 * 1000 + 129 * (1000 + 256)));
    // Weights of half a byte are a quarter of that; rows stay.
    CHECK(estimate_grouped(rows, 256, 1000, {0.5, 2}, p).hbm_traffic.si() ==
          0.5 * 2 * 256 * 1000 + 2 * 129 * (1000 + 256));
    // 300 tiles on 100 units are 3 waves, and a tail of half a wave.
    p.tail = 0.5;
    CHECK(to_microseconds(estimate_grouped(counted(Rows{300 * 64}), 128, 1000, {2, 2}, p).body) ==
          Approx(3.5 * 16.777).epsilon(1e-3));
    // Memory alone: 1.3 MB at 1 GB/s take 1.3 ms.
    p.hbm = gigabytes_per_second(1);
    CHECK(to_microseconds(estimate_grouped(rows, 256, 1000, {2, 2}, p).body) ==
          Approx(2 * (2 * 256 + 129 * 1.256)).epsilon(1e-3));
}

TEST_CASE("a fused MoE layer is two grouped GEMMs and what moves rows") {
    MoeParameters p = round_moe();
    p.launch = microseconds(20);
    p.expert = microseconds(1);
    p.stream = gigabytes_per_second(1);
    MoeShape shape{{64, 1, 1, 1, 0}, 1024, 128, true, "bf16"};
    // Up: 2 tiles side by side of 2 · 64 · 128 · 1024 FLOPs, 16.777 us; down: 8 tiles of a K of 128, 2.097 us. 64 rows of
    // 1024 are written, read and first read as tokens; the activation moves 3 · 128 a row: 2 bytes each at 1 GB/s.
    const double moved = 2 * (64 * (3 * 1024 + 3 * 128)) * 1e-3;
    CHECK(to_microseconds(estimate_moe(shape, counted(Rows{64}), p)) ==
          Approx(20 + 1 + 16.777 + 2.097 + moved).epsilon(1e-3));
    CHECK(weight_bytes("fp8_block") == 1);
    CHECK(weight_bytes("fp4_min_latency") == 0.5625);
}

TEST_CASE("prefill attention is tiles of 128 queries, each with its blocks of 128 keys") {
    // 256 tokens: 2 query blocks with 1 and 2 key blocks, each tile a block more: 5 blocks of 10 heads on 10 units, and
    // 3 of the longest tile. Exponent 1 adds them: 5 + 3, and 10 us of launch.
    const PrefillParameters p = round_prefill();
    const auto us = [&](const AttentionCall& call) { return to_microseconds(estimate_prefill(call, p)); };
    AttentionCall call = call_of(10, 256, 1, 1);
    CHECK(us(call) == Approx(18));
    call.kind = AttentionKind::backward;  // 2.5 times the 8
    CHECK(us(call) == Approx(30));
    // 512 tokens without a mask: 4 · 4 key blocks and 4 of the tiles; the longest has 5.
    call = call_of(10, 512, 1, 1);
    call.mask = AttentionMask::none;
    CHECK(us(call) == Approx(10 + 20 + 5));
    // A window of 128 keys touches 2 blocks: 1 + 2 + 2 + 2, and 4; the longest 3.
    call.mask = AttentionMask::causal;
    call.window = 128;
    CHECK(us(call) == Approx(10 + 11 + 3));
    CHECK(attended_pairs(call) == 128 * 129 / 2 + (512 - 128) * 128);
    // Values of 0 elements less: (192 + 64) / 2 is the mean of 128.
    call = call_of(10, 256, 1, 1);
    call.head_dim = 192;
    call.value_dim = 64;
    CHECK(us(call) == Approx(18));
    CHECK(flops_of(call).si() == 4.0 * 10 * (256 * 257 / 2) * 128);
    PrefillParameters other = p;
    // Backward where keys and values differ in dimension: 4 times 8.
    other.backward_unequal = 4;
    call.kind = AttentionKind::backward;
    CHECK(to_microseconds(estimate_prefill(call, other)) == Approx(10 + 8 * 4));
}

TEST_CASE("DeepSeek's gate sends what falls outside of four groups to the lowest experts") {
    // 16 experts in 8 groups of 2, 8 choices: token t wants experts t, t + 2, …, one of each group. Of equal groups the
    // first 4 are kept, so 4 of its choices are experts 0 to 7 of its own parity; 4 are the other ones of these groups.
    CHECK(group_limited_rows({2, 8, 16, 1, 0}) == Rows{2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0});
    // 128 experts, 2 choices, 64 apart: token t wants t and t + 64 in groups t/16 and 4 + t/16, which both are kept.
    const Rows wide = group_limited_rows({64, 2, 128, 1, 0});
    CHECK(wide == Rows(128, 1));
    // 32 experts, 8 choices 4 apart: one in each group of 4; token t keeps t, t + 4, t + 8, t + 12 and takes the lowest
    // four others, experts 0 to 3 but its own, and expert 4, or 5 if 4 is its own.
    CHECK(group_limited_rows({4, 8, 32, 1, 0}) == Rows{4, 4, 4, 4, 4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    // The first of 4 GPUs has 8 of these experts: 24 of 32 rows, not a quarter.
    CHECK(group_limited_rows({4, 8, 32, 4, 0}) == Rows{4, 4, 4, 4, 4, 2, 1, 1});
    // With one choice nothing falls outside.
    CHECK(group_limited_rows({16, 1, 16, 1, 0}) == expert_rows({16, 1, 16, 1, 0}));
}

TEST_CASE("decode attention is tiles of a sequence and a key head, cut where they are few") {
    DecodeParameters p;
    p.compute_units = 100;
    p.launch = microseconds(1);
    p.hbm = BytesPerSecond(no_memory);
    p.overlap_exponent = 100;
    p.tensor.tile = p.tensor.tile_group = microseconds(1);
    p.tensor.keys = microseconds(10);
    p.tensor.chain = microseconds(5);
    p.tensor.merge = microseconds(3);
    p.tensor.occupancy = p.vector.occupancy = 1;
    p.tensor.most_part = p.vector.most_part = 1e6;
    p.vector.tile = microseconds(1);
    p.vector.keys = microseconds(2);
    p.least_part = 100;
    const auto us = [&](AttentionCall call) {
        call.kind = AttentionKind::decode;
        return to_microseconds(estimate_decode(call, p));
    };
    // 100 tiles on 100 units: a tile 2 us, 1000 keys 10 us; in sequence 2 + 5 us.
    CHECK(us(call_of(100, 1000, 8, 1)) == Approx(1 + 12 + 7));
    // 9 query heads are two eights: the tile takes 3 us.
    CHECK(us(call_of(100, 1000, 9, 1)) == Approx(1 + 13 + 8));
    // 10 tiles are cut into 10 parts of 100 keys: a tenth of the work, 2 + 0.5 us in sequence, and a merge.
    CHECK(us(call_of(10, 1000, 8, 1)) == Approx(1 + 1.2 + 2.5 + 3));
    // More than 32 heads of a key head: vector units, one tile for each of 6,400 heads.
    CHECK(us(call_of(100, 1000, 64, 1)) == Approx(1 + 64 * 3 + 1));
    // 100 · 1000 keys and values of 128 · 2 bytes at 51.2 GB/s: 1 ms.
    p.hbm = gigabytes_per_second(51.2);
    CHECK(us(call_of(100, 1000, 8, 1)) == Approx(1 + 1000 + 7));
}

TEST_CASE("rows of tables of attention and MoE say what is wrong with them") {
    const std::string prefill = "dtype,kv_dtype,batch,tokens,heads,kv_heads,head_dim\n",
                      decode = "kv_dtype,batch,context,heads,kv_heads,head_dim\n",
                      moe = "kernel,dtype,tokens,hidden,inter,topk,experts,tp,ep,distribution\n",
                      unequal = "dtype,batch,tokens,heads,kv_heads,head_dim_qk,head_dim_v,causal\n",
                      grouped = "dtype,groups,M_per_group,N,K\n";
    CHECK(error_of_table(prefill + "bfloat16,fp8,1,128,8,1,128\n").empty());
    CHECK(error_of_table(decode + "fp8,1,128,8,1,128\n").empty());
    CHECK(error_of_table(moe + "_cutlass,bfloat16,8,128,256,2,8,2,4,power_law_1.2\n").empty());
    CHECK(error_of_table(unequal + "bf16,1,128,8,1,192,128,False\n").empty());
    CHECK(error_of_table(grouped + "bf16,8,128,256,128\n").empty());
    CHECK_THAT(error_of_table(unequal + "bf16,1,128,8,1,192,128,no\n"),
               Contains(":2: causal is 'no', expected True or False"));
    CHECK_THAT(error_of_table("groups,M_per_group,N,K\n8,128,256,128\n"),
               Contains(":1: column 'dtype' is missing"));
    CHECK_THAT(error_of_table("dtype,batch,tokens,heads,kv_heads,head_dim\nbf16,1,1,1,1,1\n"),
               Contains(":1: column 'kv_dtype' is missing"));
    CHECK_THAT(error_of_table(prefill + "bf17,fp8,1,128,8,1,128\n"), Contains(":2: dtype is 'bf17'"));
    CHECK_THAT(error_of_table(prefill + "bf16,fp8,1,128,8,3,128\n"),
               Contains(":2: kv_heads is '3', expected a divisor of heads"));
    CHECK_THAT(error_of_table(decode + "fp8,0,128,8,1,128\n"), Contains(":2: batch is '0'"));
    CHECK_THAT(error_of_table(moe + "_cutlass,bf16,8,128,256,2,8,2,3,balanced\n"),
               Contains(":2: ep is '3', expected a divisor of experts"));
    CHECK_THAT(error_of_table(moe + "_cutlass,bf16,8,128,256,9,8,2,4,balanced\n"),
               Contains(":2: topk is '9', expected at most experts"));
    CHECK_THAT(error_of_table(moe + "_cutlass,bf16,8,128,256,2,8,2,4,uniform\n"),
               Contains(":2: distribution is 'uniform', expected balanced, or power_law_"));
}

TEST_CASE("rates of tables count the products, half of them under a causal mask") {
    const TemporaryFolder folder;
    std::ofstream(folder / "rows.csv")
        << "dtype,batch,tokens,heads,kv_heads,head_dim_qk,head_dim_v,causal,fwd_tflops,bwd_tflops\n"
           "bf16,1,1000,1,1,192,64,False,1,1\nbf16,1,1000,1,1,192,64,True,1,1\n";
    const CsvTable table = read_csv_table(folder / "rows.csv");
    const auto row = [&](std::size_t number) {
        return KernelRowReader().read(table, number, KernelTableKind::prefill);
    };
    // 2 products of 2 · 1e6 pairs · a mean of 128 at 1 TFLOP/s: 512 us; backward 5 products.
    CHECK(to_microseconds(row(0).time) == Approx(512));
    CHECK(to_microseconds(row(0).backward) == Approx(1280));
    CHECK(to_microseconds(row(1).time) == Approx(256));
    CHECK(std::get<AttentionCall>(row(1).work).value_dim == 64);
    CHECK(std::get<AttentionCall>(row(0).work).mask == AttentionMask::none);
}

TEST_CASE("attention and grouped GEMMs of a list are read, written and priced") {
    const Json json = parse_json(R"({"name": "moe", "operators": [
        {"name": "attention", "type": "memory_bound", "read_bytes": 1000, "write_bytes": 1000, "flops": 1e9,
         "attention": {"kind": "prefill", "sequences": 2, "tokens": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128}},
        {"name": "up", "type": "gemm", "m": 4096, "n": 2048, "k": 4096, "dtype": "bf16", "groups": 8, "group_choices": 2,
         "imbalance": 1.2, "needs": ["attention"]},
        {"name": "one", "type": "gemm", "m": 4096, "n": 2048, "k": 4096, "dtype": "bf16", "needs": ["up"]}]})",
                                 "list");
    const Workload workload = read_workload(ConfigObject(json, "list"));
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    const Json written = to_json(workload);
    const Workload again = read_workload(ConfigObject(written, "again"));
    const auto& read = std::get<std::vector<Operator>>(again.content);
    CHECK(std::get<GemmShape>(read[1].work) == std::get<GemmShape>(operators[1].work));
    CHECK(std::get<StreamingWork>(read[0].work).attention ==
          std::get<StreamingWork>(operators[0].work).attention);
    CHECK_FALSE(written["operators"][2].contains("groups"));

    const Machine machine = shipped.machine("h200_8");
    const CostModels models;
    const auto alone = [&](const Work& work) {
        return isolated_time(models.cost(Task{work}, machine), machine.resources);
    };
    const auto& call = std::get<StreamingWork>(operators[0].work).attention;
    // By the kernel alone where that was fitted; its backward pass has a fit of its own.
    const auto priced = [&](const AttentionCall& one, const Machine& on) {
        const Task task{MemoryBoundWork{Bytes(1000), Bytes(1000), Flops(1e9), DType::bf16, Seconds(), one}};
        return (isolated_time(models.cost(task, on), on.resources) - on.topology.device().launch->kernel)
            .si();
    };
    const auto& prefill = machine.calibration.kernels.prefill;
    CHECK(priced(call, machine) == Approx(estimate_prefill(call, prefill.at("bf16_kernel")).si()));
    AttentionCall backward = call, decode = call;
    backward.kind = AttentionKind::backward;
    CHECK(attention_fit(machine.calibration.kernels, backward) == "bf16_kernel_backward");
    CHECK(priced(backward, machine) ==
          Approx(estimate_prefill(call, prefill.at("bf16_kernel_backward")).si()));
    decode.kind = AttentionKind::decode;
    const DecodeParameters& of_decode = machine.calibration.kernels.decode.at("bf16_kernel");
    CHECK(priced(decode, machine) == Approx(estimate_decode(decode, of_decode).si()));
    // A lower clock slows what units do, not memory.
    const Machine slowed = at_speed(machine, 0.8);
    const double clock = clock_of(slowed);
    CHECK(priced(call, slowed) == Approx(priced(call, machine) / clock));
    CHECK(priced(decode, slowed) == Approx(estimate_decode(decode, of_decode, clock).si()));
    CHECK(priced(decode, slowed) > priced(decode, machine));
    CHECK(priced(decode, slowed) < priced(decode, machine) / clock);
    // Elsewhere by the operator of the public tables.
    const Machine operators_only = shipped.machine("b200_8");
    CHECK(attention_fit(operators_only.calibration.kernels, call) == "bf16");
    CHECK(priced(call, operators_only) ==
          Approx(estimate_prefill(call, operators_only.calibration.kernels.prefill.at("bf16")).si()));
    const GemmShape grouped = std::get<GemmShape>(operators[1].work);
    GemmShape even = grouped, one = grouped;
    even.imbalance = 0;
    one.groups = 1;
    CHECK(alone(grouped) > alone(even));
    CHECK(alone(even) > alone(one));
    // Of 8 experts, of which each of 4 tokens picks 2 at random, 2.5 get none.
    GemmShape few = even, random_few = even;
    few.m = random_few.m = 8;
    random_few.group_routing = GroupRouting::random;
    CHECK(alone(random_few) < 0.8 * alone(few));
    // The faster of two kernels: that for few rows, and that for many.
    for (const std::int64_t m : {8, 100'000}) {
        GemmShape narrow = even;
        narrow.m = m;
        narrow.dtype = DType::fp4;
        const auto by = [&](const std::string& fit) {
            return estimate_grouped(rows_of(narrow), 2048, 4096, {weight_bytes("fp4"), weight_bytes("fp4")},
                                    operators_only.calibration.kernels.moe.at(fit))
                .body;
        };
        const Seconds fastest = std::min(by("fp4"), by("fp4_min_latency"));
        CHECK(models.cost(Task{narrow}, operators_only).body ==
              fastest + operators_only.calibration.gemm_for(DType::fp4).launch);
    }
    // A device without a fit prices a batch of its own GEMMs.
    const Machine other = shipped.machine("mi100_1");
    CHECK(other.calibration.kernels.moe.empty());
    const CostModels its_models;
    const auto of_other = [&](const GemmShape& shape) {
        return isolated_time(its_models.cost(Task{shape}, other), other.resources);
    };
    CHECK(of_other(grouped) >= of_other(even));
    CHECK(of_other(even) > of_other(one));
}

}  // namespace overlap::test::kernels_test
