#include "sim/workload/workload.hpp"

#include <catch2/catch.hpp>
#include <ctime>

#include "sim/schedules/schedule.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::workload_test {

using Catch::Contains;

namespace {

Workload read(const std::string& text) {
    const Json json = parse_json(text, "w.json");
    return read_workload(ConfigObject(json, "w.json"));
}

std::string reading(const std::string& text) {
    return error_of([&] { read(text); });
}

const std::string gemm = R"("gemm": {"m": 10, "n": 20, "k": 30, "dtype": "fp8"})";

std::string pair_text(const std::string& collective, const std::string& more = "") {
    return R"({"collective": ")" + collective + R"(", )" + gemm + more + "}";
}

std::string list(const std::string& operators) {
    return R"({"name": "l", "operators": [)" + operators + "]}";
}

}  // namespace

TEST_CASE("the order follows from the collective unless it is given") {
    CHECK(read(pair_text("all_gather")).form() == "all_gather > gemm");
    CHECK(read(pair_text("all_to_all")).form() == "all_to_all > gemm");
    CHECK(read(pair_text("all_to_all", R"(, "order": "gemm_first")")).form() == "gemm > all_to_all");
    CHECK(read(pair_text("all_gather", R"(, "order": "gemm_first")")).form() == "gemm > all_gather");
    CHECK(read(pair_text("reduce_scatter")).form() == "gemm > reduce_scatter");
    CHECK(read(pair_text("all_reduce")).form() == "gemm > all_reduce");
    CHECK(read(pair_text("all_reduce", R"(, "order": "independent")")).form() == "gemm | all_reduce");
    CHECK(read(pair_text("all_gather", R"(, "shard_dim": "k")")).pair()->shard_dim == ShardDim::k);
}

TEST_CASE("orders and shardings that make no sense are errors") {
    CHECK_THAT(reading(pair_text("reduce_scatter", R"(, "order": "collective_first")")),
               Contains("w.json: /order: is 'collective_first', but reduce_scatter sums the GEMM's results"));
    CHECK_THAT(reading(pair_text("all_reduce", R"(, "order": "collective_first")")), Contains("/order"));
    CHECK_THAT(reading(pair_text("all_to_all", R"(, "shard_dim": "k")")), Contains("/shard_dim: is 'k'"));
    CHECK_THAT(reading(pair_text("all_gather", R"(, "order": "independent", "shard_dim": "k")")),
               Contains("/shard_dim"));
    CHECK_THAT(reading(pair_text("all_gather", R"(, "order": "gemm_first", "shard_dim": "k")")),
               Contains("/shard_dim: is 'k', which only all_gather before a GEMM has"));
    CHECK_THAT(reading(pair_text("all_gathr")), Contains("did you mean 'all_gather'"));
    CHECK_THAT(reading(pair_text("all_gather", R"(, "order": "first")")), Contains("/order: is 'first'"));
}

TEST_CASE("the operand is A before a GEMM and C after it, in its own type") {
    // A: 10 × 30 fp8 of 1 B. C: 10 × 20 bf16, the output of fp8, of 2 B.
    CHECK(read(pair_text("all_gather")).pair()->operand(4).si() == Approx(300));
    CHECK(read(pair_text("reduce_scatter")).pair()->operand(4).si() == Approx(400));
    CHECK(read(pair_text("all_to_all", R"(, "order": "gemm_first")")).pair()->operand(4).si() == Approx(400));
    // All of the C of each of 4 GPUs.
    CHECK(read(pair_text("all_gather", R"(, "order": "gemm_first")")).pair()->operand(4).si() ==
          Approx(1600));
    CHECK(read(pair_text("all_gather", R"(, "order": "independent")")).pair()->operand(4).si() ==
          Approx(300));
    CHECK(read(pair_text("all_reduce", R"(, "order": "independent")")).pair()->operand(4).si() ==
          Approx(400));
}

TEST_CASE("sizes of a GEMM are whole, positive and sane") {
    const auto with_m = [](const std::string& m) {
        return reading(R"({"collective": "all_gather", "gemm": {"m": )" + m +
                       R"(, "n": 1, "k": 1, "dtype": "bf16"}})");
    };
    CHECK(with_m("1") == "");
    int checked = 0;
    for (const std::string bad : {"0", "-1", "1.5", "1e9", "1000000001", "\"8\"", "null", "[8]"}) {
        CHECK_THAT(with_m(bad),
                   Contains("w.json: /gemm/m: is") && Contains("a whole number from 1 to 1000000000"));
        ++checked;
    }
    CHECK(checked == 8);
    CHECK_THAT(reading(R"({"collective": "all_gather"})"), Contains("/gemm: is missing"));
    CHECK_THAT(reading(R"({"collective": "all_gather", "gemm": {"m": 1, "n": 1, "k": 1, "dtype": "bf17"}})"),
               Contains("/gemm/dtype: is 'bf17' (did you mean 'bf16'?)"));
    CHECK_THAT(reading(pair_text("all_gather", R"(, "colour": 1)")), Contains("/colour: is an unknown key"));
}

TEST_CASE("a list of operators is read with what each needs") {
    const Workload workload = read(list(R"(
        {"name": "ag", "type": "collective", "collective": "all_gather", "bytes": 100},
        {"name": "mm", "type": "gemm", "m": 1, "n": 2, "k": 3, "dtype": "bf16", "needs": ["ag"]},
        {"name": "act", "type": "memory_bound", "read_bytes": 5, "write_bytes": 0, "needs": ["mm"]},
        {"name": "sum", "type": "reduction", "bytes": 7, "parts": 4, "needs": ["ag", "act"]})"));
    CHECK(workload.form() == "operators");
    CHECK(workload.pair() == nullptr);
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    REQUIRE(operators.size() == 4);
    CHECK(std::get<CollectiveWork>(operators[0].work).operand.si() == 100);
    CHECK(std::get<GemmShape>(operators[1].work) == GemmShape{1, 2, 3});
    CHECK(std::get<StreamingWork>(operators[2].work).read.si() == 5);
    CHECK(std::get<ReductionWork>(operators[3].work).parts == 4);
    CHECK(operators[3].needs == std::vector<std::size_t>{0, 2});
}

TEST_CASE("a list of operators is read in a time that grows with its length") {
    const auto chain_of = [](int length) {
        Json operators = Json::array();
        for (int i = 0; i < length; ++i)
            operators.push_back(
                {{"name", "op" + std::to_string(i)},
                 {"type", i % 2 == 0 ? "gemm" : "collective"},
                 {"needs", i > 0 ? Json::array({"op" + std::to_string(i - 1)}) : Json::array()}});
        for (Json& one : operators) {
            if (one["type"] == "gemm")
                one.update({{"m", 8}, {"n", 8}, {"k", 8}, {"dtype", "bf16"}});
            else
                one.update({{"collective", "all_reduce"}, {"bytes", 1e6}});
        }
        return Json{{"operators", operators}};
    };
    const ScheduleEntry& fused = find_schedule("work_group_fused");
    const auto seconds = [&](const Json& json) {
        double least = 1e9;
        for (int again = 0; again < 3; ++again) {
            const std::clock_t begun = std::clock();
            const Workload workload = read_workload({json, "x.json"});
            CHECK(fused.handles(workload));
            least = std::min(least, static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC);
        }
        return least;
    };
    // Eight times as many: 8 times as long, with something to spare; 64 times, if each were compared with all.
    CHECK(seconds(chain_of(16'000)) < 25 * seconds(chain_of(2'000)));
}

TEST_CASE("a GEMM of a list may be a batch, the one of a pair not") {
    const std::string shape = R"("m": 10, "n": 20, "k": 30, "dtype": "fp16")";
    const auto one = [&](const std::string& batch) {
        return list(R"({"name": "a", "type": "gemm", )" + shape + R"(, "batch": )" + batch + "}");
    };
    const Workload read_back = read(to_json(read(one("6"))).dump());
    const auto& gemm = std::get<GemmShape>(std::get<std::vector<Operator>>(read_back.content)[0].work);
    CHECK(gemm == GemmShape{10, 20, 30, DType::fp16, false, 6});
    CHECK(gemm.flops().si() == 6 * 2.0 * 10 * 20 * 30);
    CHECK_THAT(reading(one("0")), Contains("/operators/0/batch: is 0"));
    CHECK_THAT(reading(R"({"collective": "all_gather", "gemm": {)" + shape + R"(, "batch": 6}})"),
               Contains("/gemm/batch"));
}

TEST_CASE("mistakes in a list of operators are errors with their place") {
    const std::string a = R"({"name": "alpha", "type": "reduction", "bytes": 1, "parts": 2})";
    CHECK_THAT(reading(list("")), Contains("/operators: is empty"));
    CHECK_THAT(reading(list(a + "," + a)),
               Contains("/operators/1/name: is 'alpha', which an earlier operator has"));
    CHECK_THAT(reading(list(
                   a + R"(, {"name": "b", "type": "reduction", "bytes": 1, "parts": 2, "needs": ["alpa"]})")),
               Contains("/operators/1/needs: names 'alpa'") && Contains("did you mean 'alpha'"));
    CHECK_THAT(reading(list(R"({"name": "b", "type": "reduction", "bytes": 1, "parts": 2, "needs": ["b"]})")),
               Contains("/operators/0/needs: names 'b'"));
    CHECK_THAT(reading(list(R"({"name": "b", "type": "reduction", "bytes": 1, "parts": 1})")),
               Contains("/operators/0/parts: is 1"));
    CHECK_THAT(reading(list(R"({"name": "b", "type": "gem"})")), Contains("did you mean 'gemm'"));
    CHECK_THAT(
        reading(list(R"({"name": "b", "type": "collective", "collective": "all_gather", "bytes": 0})")),
        Contains("/operators/0/bytes: is 0"));
    CHECK_THAT(reading(R"({"operators": [)" + a + R"(], "collective": "all_gather"})"),
               Contains("/collective: is an unknown key"));
}

TEST_CASE("what is written as JSON is read back as the same workload") {
    std::vector<std::string> names = shipped.names("workloads");
    REQUIRE(names.size() > 40);
    for (const std::string& name : names) {
        INFO(name);
        const Json json = read_json_file(shipped.find("workloads", name));
        const Json written = to_json(read_workload(ConfigObject(json, name)));
        CHECK(to_json(read_workload(ConfigObject(written, "written"))) == written);
    }
    const Workload pair = read(pair_text("all_gather", R"(, "shard_dim": "k")"));
    const Json json = to_json(pair);
    const Workload again = read_workload(ConfigObject(json, "again"));
    CHECK(again.form() == pair.form());
    CHECK(again.pair()->gemm == pair.pair()->gemm);
    CHECK(again.pair()->shard_dim == ShardDim::k);
}

}  // namespace overlap::test::workload_test
