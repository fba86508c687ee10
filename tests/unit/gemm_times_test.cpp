#include "models/gemm_times.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <tuple>

#include "models/cost_model_registry.hpp"
#include "models/gemm_model.hpp"
#include "sim/calibrate/measurements/gemm_times_json.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::gemm_times_test {

using Catch::Contains;
using Catch::EndsWith;

namespace {

const GemmShape known{4096, 4096, 4096};

/// A machine on which the known shape took twice as long as the model says.
Machine machine_that_knows(double times_the_model) {
    Machine machine = machine_of(topology_of(2, group("full_mesh")));
    machine.calibration.gemm_times[known].time =
        times_the_model * estimate_gemm(known, machine.calibration.gemm_for(known.dtype)).total();
    return machine;
}

/// The claim on a machine of 100 units if the known shape has `tiles` tiles; by the model 41 × 41.
Claim claim_of(int tiles, int gemm_cus = 0, const std::vector<std::string>& chosen = {}) {
    Machine machine = machine_that_knows(2);
    machine.calibration.gemm_times[known].tiles = tiles;
    Task task{known};
    task.gemm_cus = gemm_cus;
    return CostModels(chosen).cost(task, machine).claim.value();
}

/// The units at most, when the tail begins, the units that it keeps.
std::tuple<int, double, int> summed_up(const Claim& claim) {
    const Tail tail = std::get<Tiles>(claim.parts).tail.value_or(Tail());
    return {claim.most, tail.from, tail.units};
}

GemmTimes reading(const std::string& group) {
    const TemporaryFolder folder;
    std::ofstream(folder / "gpu.json") << R"({"measured_gemms": )" << group << "}";
    return read_gemm_times(folder / "gpu.json");
}

const std::string line_start =
    R"({"kind":"gemm","pass":1,"case_line":1,"m":8,"n":16,"k":32,"dtype":"bf16","beta":"0",)";
const std::string machine_line =
    R"({"schema":1,"kind":"machine","date":"2026-11-21","device":"NVIDIA H200","compute_units":132})";

/// The GEMM of `line_start` with more keys and its time in a chain.
std::string line(const std::string& keys, double chain_us) {
    return "\n" + line_start + keys + R"("unit":"us","median":1,"min":1,"p90":1,"chain_us":)" +
           std::to_string(chain_us) + "}";
}

}  // namespace

TEST_CASE("a GEMM of a measured shape takes the measured time, every other that of the model") {
    const Machine machine = machine_that_knows(2);
    const auto body = [&](const GemmShape& shape, const std::vector<std::string>& chosen) {
        return CostModels(chosen).cost(Task{shape}, machine).body;
    };
    CHECK(body(known, {}) / body(known, {"gemm_tiled"}) == Approx(2));
    for (const GemmShape& other :
         {GemmShape{4096, 4096, 4097}, GemmShape{4096, 4096, 4096, DType::bf16, true}})
        CHECK(body(other, {}) == body(other, {"gemm_tiled"}));
}

TEST_CASE("a hot chip is as much slower in a measured GEMM as in a modelled one") {
    Machine machine = machine_that_knows(2);
    machine.calibration.gemm.at(DType::bf16).sustained.slowdown = 0.2;
    machine.calibration.gemm.at(DType::bf16).sustained.time = microseconds(1000);
    const GemmParameters& parameters = machine.calibration.gemm_for(DType::bf16);
    machine.calibration.gemm_times[known].time = 2.0 * estimate_gemm(known, parameters).total();
    machine.sustained = microseconds(1e6);
    const Seconds tiled = CostModels(std::vector<std::string>{"gemm_tiled"}).cost(Task{known}, machine).body;
    CHECK(CostModels().cost(Task{known}, machine).body / tiled == Approx(2));
}

TEST_CASE("a measured GEMM asks for no more than there is") {
    const Machine machine = machine_that_knows(0.5);
    const Cost cost = CostModels().cost(Task{known}, machine);
    for (const Demand& demand : cost.demands)
        CHECK(demand.amount <= machine.resources[demand.resource].capacity * cost.body.si() * (1 + 1e-12));
}

TEST_CASE("a measured GEMM claims compute units for the tiles that the library made") {
    CHECK(summed_up(claim_of(1)) == std::tuple(1, 1.0, 0));
    CHECK(summed_up(claim_of(60)) == std::tuple(60, 1.0, 0));  // one wave, begun at once
    CHECK(summed_up(claim_of(100)) == std::tuple(100, 1.0, 0));
    CHECK(summed_up(claim_of(101)) == std::tuple(100, 1.0 / 2, 1));
    CHECK(summed_up(claim_of(230)) == std::tuple(100, 2.0 / 3, 30));  // two full waves, then 30 tiles
    CHECK(summed_up(claim_of(300)) == std::tuple(100, 1.0, 0));       // three full ones
    CHECK(claim_of(230).least == 1);
}

TEST_CASE("tiles that are not known, and a masked GEMM's, are the model's") {
    const std::vector<std::string> tiled{"gemm_tiled"};
    // 1681 tiles: 16 full waves, then 81; on 50 units 33, then 31.
    REQUIRE(summed_up(claim_of(0)) == summed_up(claim_of(0, 0, tiled)));
    CHECK(summed_up(claim_of(0)) == std::tuple(100, Approx(16.0 / 17), 81));
    CHECK(summed_up(claim_of(230, 50)) == summed_up(claim_of(230, 50, tiled)));
    CHECK(summed_up(claim_of(230, 50)) == std::tuple(50, Approx(33.0 / 34), 31));
    CHECK(std::get<2>(summed_up(claim_of(230, 100))) == 30);  // a mask of all units is none
}

TEST_CASE("a measured time is not that of the same shape with weights of fewer bits in memory") {
    const Machine machine = machine_that_knows(2);
    GemmShape narrow = known;
    narrow.weight_bits = 4.25;
    const auto body = [&](const std::vector<std::string>& chosen) {
        return CostModels(chosen).cost(Task{narrow}, machine).body;
    };
    CHECK(body({}) == body({"gemm_tiled"}));
}

TEST_CASE("nothing but the claim depends on the tiles") {
    Machine machine = machine_that_knows(2);
    const Cost without = CostModels().cost(Task{known}, machine);
    machine.calibration.gemm_times[known].tiles = 230;
    const Cost with = CostModels().cost(Task{known}, machine);
    CHECK(with.body == without.body);
    REQUIRE(with.demands.size() == without.demands.size());
    for (std::size_t i = 0; i < with.demands.size(); ++i)
        CHECK(with.demands[i].amount == without.demands[i].amount);
}

TEST_CASE("times are read by shape, type and accumulation; anything else is an error that says where") {
    const GemmTimes times =
        reading(R"({"provenance": {}, "bf16_us": {"8x16x32": 5}, "fp8_accumulated_us": {"8x16x32": 7}})");
    CHECK(times.size() == 2);
    CHECK(to_microseconds(times.at({8, 16, 32, DType::bf16}).time) == Approx(5));
    CHECK(to_microseconds(times.at({8, 16, 32, DType::fp8, true}).time) == Approx(7));
    CHECK(times.at({8, 16, 32, DType::bf16}).tiles == 0);
    const auto error = [](const std::string& group) { return error_of([&] { reading(group); }); };
    CHECK_THAT(error(R"({"bf16_us": {}})"), Contains("/measured_gemms/provenance: is missing"));
    CHECK_THAT(error(R"({"provenance": {}, "bf16": {}})"), Contains("/measured_gemms/bf16"));
    CHECK_THAT(error(R"({"provenance": {}, "bf16_us": {"8x16": 5}})"), Contains("expected MxNxK"));
    CHECK_THAT(error(R"({"provenance": {}, "bf16_us": {"8x16x32": 0}})"), Contains("8x16x32: is 0"));
}

TEST_CASE("tiles are read beside the times; an error says where, what, and what is allowed") {
    const auto bf16 = [](const std::string& tiles) {
        return R"({"provenance": {}, "bf16_us": {"8x16x32": 5, "8x16x64": 6}, "bf16_tiles": )" + tiles + "}";
    };
    const GemmTimes gemms = reading(bf16(R"({"8x16x64": 640})"));
    CHECK(gemms.size() == 2);
    CHECK(gemms.at({8, 16, 32}).tiles == 0);
    CHECK(gemms.at({8, 16, 64}).tiles == 640);
    CHECK(to_microseconds(gemms.at({8, 16, 64}).time) == Approx(6));

    const auto error = [&](const std::string& tiles) { return error_of([&] { reading(bf16(tiles)); }); };
    const std::string row = "gpu.json: /measured_gemms/bf16_tiles/8x16x32: is ",
                      allowed = ", expected a whole number from 1 to 1000000000";
    CHECK_THAT(error(R"({"8x16x32": 0})"), EndsWith(row + "0" + allowed));
    CHECK_THAT(error(R"({"8x16x32": 1.5})"), EndsWith(row + "1.5" + allowed));
    CHECK_THAT(error(R"({"8x16x32": 1000000001})"), EndsWith(row + "1000000001" + allowed));
    CHECK_THAT(error(R"({"8x16x32": "many"})"), EndsWith(row + "\"many\"" + allowed));
    CHECK_THAT(error(R"({"8x16": 5})"), Contains("/measured_gemms/bf16_tiles: key"));
    CHECK_THAT(error(R"({"9x16x32": 5})"), EndsWith("gpu.json: /measured_gemms/bf16_tiles/9x16x32: is 5, "
                                                    "expected a shape of bf16_us only"));
    CHECK_THAT(error_of([] { reading(R"({"provenance": {}, "fp8_accumulated_tiles": {"8x16x32": 5}})"); }),
               EndsWith("expected a shape of fp8_accumulated_us only"));
    CHECK_THAT(error("[]"), Contains("/measured_gemms/bf16_tiles: is"));
}

TEST_CASE("the table is the mean over GPUs and nodes of GEMMs on all units with warm weights") {
    const TemporaryFolder folder;
    std::ofstream(folder / "gemm.jsonl") << machine_line << line(R"("units":0,"weights":"warm","gpu":0,)", 10)
                                         << line(R"("units":0,"weights":"cold","gpu":0,)", 1000)
                                         << line(R"("units":66,"weights":"warm","gpu":0,)", 1000) << '\n';
    std::ofstream(folder / "parts_1.jsonl")
        << machine_line << line(R"("units":0,"weights":"warm","gpu":0,)", 11)
        << line(R"("units":0,"weights":"warm","gpu":1,)", 12) << '\n';
    const Json group = gemm_times_json(folder / "", "traces/x");
    CHECK(group.at("bf16_us") == Json{{"8x16x32", 11}});
    CHECK(group.at("provenance").at("file") == "traces/x/gemm.jsonl, parts_1.jsonl");
    CHECK(group.size() == 2);  // no tiles: the files don't say what the library chose
}

TEST_CASE("the table's tiles are the library's waves by the compute units, the first file's of a shape") {
    const TemporaryFolder folder;
    const std::string all = R"("units":0,"weights":"warm","gpu":0,)",
                      other = R"("units":0,"weights":"warm","gpu":1,)";
    const auto chosen = [](const std::string& algorithm) { return R"("algorithm":")" + algorithm + R"(",)"; };
    const auto group_of = [&](const std::string& rows) {
        std::ofstream(folder / "gemm.jsonl") << machine_line << rows << '\n';
        return gemm_times_json(folder / "", "traces/x");
    };
    // 132 units: 1.939394 waves are 256 tiles, 1.818182 are 240.
    std::ofstream(folder / "parts_1.jsonl")
        << machine_line << line(all + chosen("id 66 tile 23 waves 1.818182"), 12) << '\n';
    const Json expected{{"8x16x32", 256}};
    CHECK(group_of(line(all + chosen("id 66 tile 24 splitk 1 waves 1.939394"), 10)).at("bf16_tiles") ==
          expected);
    CHECK(group_of(line(all, 10) + line(other + chosen("id 66 waves 1.939394"), 10)).at("bf16_tiles") ==
          expected);
    CHECK(group_of(line(all + chosen("standard"), 10)).at("bf16_tiles") == Json{{"8x16x32", 240}});
    CHECK(group_of(line(all + chosen("id 66 splitk 3 waves 0.272727"), 10)).at("bf16_tiles") ==
          Json{{"8x16x32", 108}});
    CHECK(group_of(line(all + chosen("id 66 waves 0.001"), 10)).at("bf16_tiles") == Json{{"8x16x32", 1}});
    for (const std::string waves : {"", "none", "0.000000", "-1", "nan", "1e6", "1.5 2"}) {
        INFO(waves);
        CHECK_THAT(error_of([&] { group_of(line(all + chosen("id 66 waves " + waves), 10)); }),
                   EndsWith("gemm.jsonl:2: /algorithm: is 'id 66 waves " + waves +
                            "', expected a number > 0 and <= 900000 after 'waves'"));
    }
}

}  // namespace overlap::test::gemm_times_test
