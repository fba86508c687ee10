#include "models/gemm_times.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "models/calibration/gemm_times_json.hpp"
#include "models/cost_model_registry.hpp"
#include "models/gemm_model.hpp"
#include "tests/test_support.hpp"

using namespace overlap;
using namespace overlap::test;
using Catch::Contains;

namespace {

const GemmShape known{4096, 4096, 4096};

/// A machine on which the known shape took twice as long as the model says.
Machine machine_that_knows(double times_the_model) {
    Machine machine = machine_of(topology_of(2, group("full_mesh")));
    machine.calibration.gemm_times[known] =
        times_the_model * estimate_gemm(known, machine.calibration.gemm_for(known.dtype)).total();
    return machine;
}

GemmTimes reading(const std::string& group) {
    const TemporaryFolder folder;
    std::ofstream(folder / "gpu.json") << R"({"measured_gemms": )" << group << "}";
    return read_gemm_times(folder / "gpu.json");
}

const std::string line_start =
    R"({"kind":"gemm","pass":1,"case_line":1,"m":8,"n":16,"k":32,"dtype":"bf16","beta":"0",)";

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
    machine.calibration.gemm.at(DType::bf16).sustained_slowdown = 0.2;
    machine.calibration.gemm.at(DType::bf16).sustained_time = microseconds(1000);
    const GemmParameters& parameters = machine.calibration.gemm_for(DType::bf16);
    machine.calibration.gemm_times[known] = 2.0 * estimate_gemm(known, parameters).total();
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

TEST_CASE("times are read by shape, type and accumulation; anything else is an error that says where") {
    const GemmTimes times =
        reading(R"({"provenance": {}, "bf16_us": {"8x16x32": 5}, "fp8_accumulated_us": {"8x16x32": 7}})");
    CHECK(times.size() == 2);
    CHECK(to_microseconds(times.at({8, 16, 32, DType::bf16})) == Approx(5));
    CHECK(to_microseconds(times.at({8, 16, 32, DType::fp8, true})) == Approx(7));
    const auto error = [](const std::string& group) { return error_of([&] { reading(group); }); };
    CHECK_THAT(error(R"({"bf16_us": {}})"), Contains("/measured_gemms/provenance: is missing"));
    CHECK_THAT(error(R"({"provenance": {}, "bf16": {}})"), Contains("/measured_gemms/bf16"));
    CHECK_THAT(error(R"({"provenance": {}, "bf16_us": {"8x16": 5}})"), Contains("expected MxNxK"));
    CHECK_THAT(error(R"({"provenance": {}, "bf16_us": {"8x16x32": 0}})"), Contains("8x16x32: is 0"));
}

TEST_CASE("the table is the mean over GPUs and nodes of GEMMs on all units with warm weights") {
    const TemporaryFolder folder;
    const std::string machine = R"({"schema":1,"kind":"machine","date":"2026-11-21","device":"NVIDIA H200"})";
    const auto line = [](const std::string& key, double chain_us) {
        return "\n" + line_start + key + R"("unit":"us","median":1,"min":1,"p90":1,"chain_us":)" +
               std::to_string(chain_us) + "}";
    };
    std::ofstream(folder / "gemm.jsonl") << machine << line(R"("units":0,"weights":"warm","gpu":0,)", 10)
                                         << line(R"("units":0,"weights":"cold","gpu":0,)", 1000)
                                         << line(R"("units":66,"weights":"warm","gpu":0,)", 1000) << '\n';
    std::ofstream(folder / "parts_1.jsonl") << machine << line(R"("units":0,"weights":"warm","gpu":0,)", 11)
                                            << line(R"("units":0,"weights":"warm","gpu":1,)", 12) << '\n';
    const Json group = gemm_times_json(folder / "", "traces/x");
    CHECK(group.at("bf16_us") == Json{{"8x16x32", 11}});
    CHECK(group.at("provenance").at("file") == "traces/x/gemm.jsonl, parts_1.jsonl");
    CHECK(group.size() == 2);
}
