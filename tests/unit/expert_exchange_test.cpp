// All-to-alls of experts by DeepEP: how often a token is sent, the formula against arithmetic by hand, and lists that have them.
#include <catch2/catch.hpp>

#include "models/cost_model_registry.hpp"
#include "models/expert_exchange.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::expert_exchange_test {

using Catch::Contains;

namespace {

/// 1,000 tokens of 1,000 bytes for 10 SMs. One SM takes 1 us for each of: copy, its bytes, what a token costs once, its bytes.
ExpertExchange exchange_of(std::int32_t choices) {
    return {.tokens = 1000, .hidden = 500, .choices = choices, .experts = 32, .sms = 10};
}
ExchangeParameters round_parameters() {
    ExchangeParameters p;
    p.launch = microseconds(10);
    p.copy = p.token = microseconds(1);
    p.start = p.unit = p.own = gigabytes_per_second(1);
    p.node = gigabytes_per_second(0.5);
    p.link = gigabytes_per_second(1000);
    p.nic = gigabytes_per_second(1000);
    p.link_exponent = 100;
    return p;
}
double us(const ExpertExchange& exchange, const ExchangeGroup& group, const ExchangeParameters& p) {
    return to_microseconds(estimate_exchange(exchange, group, p));
}

}  // namespace

TEST_CASE("a token is sent once to each GPU that has one of its experts") {
    ExpertExchange exchange{.tokens = 1, .hidden = 1, .choices = 2, .experts = 4, .sms = 2};
    // The second of two experts is one of three: one in the first one's half, two in the other.
    CHECK(exchange.copies_to(2) == Approx(1 + 2.0 / 3));
    CHECK(exchange.copies_to(4) == Approx(2));
    CHECK(exchange.copies_to(1) == Approx(1));
    // None of 8 is among a GPU's 32 of 256: 224/256 * 223/255 * ... * 217/249 = 0.33817
    exchange.choices = 8;
    exchange.experts = 256;
    CHECK(exchange.copies_to(8) == Approx(8 * (1 - 0.33817)).epsilon(1e-4));
    exchange.sms = 0;
    CHECK(exchange.copies_to(8) == 8);
    exchange.hidden = 128;
    CHECK(exchange.token_bytes() == Bytes(256));
    exchange.dtype = DType::fp8;
    CHECK(exchange.token_bytes() == Bytes(132));
}

TEST_CASE("a normal kernel takes its start and the longer of its SMs' work and the links") {
    const ExchangeGroup node{8, 1};
    ExchangeParameters p = round_parameters();
    // Start: 10 us, and 1 us for 1,000 bytes at 1 GB/s. An SM has 100 tokens of 1 copy: 4 us each.
    CHECK(us(exchange_of(1), node, p) == Approx(11 + 400));
    // 7/8 of 1 MB leave the GPU: 1,000 us at 0.875 GB/s.
    p.link = gigabytes_per_second(0.875);
    CHECK(us(exchange_of(1), node, p) == Approx(11 + 1000));
    // Of two nodes a token goes to one: 2 us more at 0.5 GB/s. Half of 1 MB leaves the node: 5,000 us at 0.1 GB/s.
    p = round_parameters();
    CHECK(us(exchange_of(1), {16, 2}, p) == Approx(11 + 600));
    p.nic = gigabytes_per_second(0.1);
    CHECK(us(exchange_of(1), {16, 2}, p) == Approx(11 + 5000));
    p.start_exponent = 2;
    CHECK(us(exchange_of(1), {16, 2}, p) == Approx(std::hypot(11, 5000)));
}

TEST_CASE("a low-latency kernel has a worker for each expert of a GPU, and knows neither SMs nor nodes") {
    ExpertExchange exchange = exchange_of(2);
    exchange.sms = 0;
    ExchangeParameters p = round_parameters();
    p.expert = microseconds(0.5);
    // Start: 10 + 1 + 32 · 0.5 us. 4 experts a GPU: 250 tokens each, 2 copies of 2 us.
    CHECK(us(exchange, {8, 1}, p) == Approx(27 + 1000));
}

TEST_CASE("a list's all-to-all by DeepEP takes its time, and SMs, and no schedule cuts it") {
    const auto list = [](const std::string& deepep) {
        return Json::parse(R"({"name": "experts", "operators": [
            {"name": "gemm", "type": "gemm", "m": 4096, "n": 4096, "k": 4096, "dtype": "bf16"},
            {"name": "combine", "type": "collective", "collective": "all_to_all", "bytes": 33554432, "dtype": "bf16", "needs": ["gemm"],
             "deepep": )" + deepep +
                           "}]}");
    };
    const std::string combine =
        R"({"phase": "combine", "tokens": 4096, "hidden": 4096, "top_k": 8, "experts": 256, "sms": 16, "dtype": "bf16"})";
    const Workload workload = read_workload({list(combine), "list"});
    CHECK(read_workload({to_json(workload), "again"}).content == workload.content);
    const CostModels models{std::vector<std::string>()};
    const Machine machine = shipped_machine("h200_8");
    CollectiveKernelWork work;
    work.kind = CollectiveKind::all_to_all;
    work.kernel = CollectiveKernel::deepep;
    work.exchange =
        std::get<CollectiveWork>(std::get<std::vector<Operator>>(workload.content)[1].work).exchange;
    const Cost cost = models.cost(Task{work}, machine);
    const ExchangeParameters& p = machine.calibration.kernels.exchange.at("deepep_combine");
    CHECK(isolated_body(cost, machine.resources) == estimate_exchange(work.exchange, {8, 1}, p));
    REQUIRE(cost.holds.size() == 1);
    CHECK(cost.holds.front().units == 16);
    // 256 experts on 132 SMs: blocks of 2, so that 128 run.
    work.exchange.sms = 0;
    CHECK(models.cost(Task{work}, machine).holds.front().units == 128);
    CHECK_THAT(error_of([&] { models.cost(Task{work}, shipped_machine("mi300x_8")); }), Contains("DeepEP"));
    CHECK_THAT(
        error_of([&] {
            read_workload(
                {list(
                     R"({"phase": "combine", "tokens": 1, "hidden": 1, "top_k": 9, "experts": 8, "sms": 4, "dtype": "bf16"})"),
                 "list"});
        }),
        Contains("/operators/1/deepep/top_k"));
}

}  // namespace overlap::test::expert_exchange_test
