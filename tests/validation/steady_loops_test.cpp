// Predicted against measured: GEMMs, and GEMMs with copies, back to back on one GPU until the clock had settled
// (traces/*/pytorch/loops.jsonl). The constants of power come from other measurements (configs/devices).
#include <catch2/catch.hpp>
#include <fstream>

#include "sim/core/error_summary.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::steady_loops_test {
namespace {

/// The operators of a loop's iteration; null where the simulator has no word for it: zeros as data, copies alone.
Json workload_of(const Json& row) {
    if (!row.contains("gemm") || row.value("operands", "") == "zeros") return nullptr;
    Json gemm{{"name", "gemm"},      {"type", "gemm"},      {"m", row["gemm"][0]},
              {"n", row["gemm"][1]}, {"k", row["gemm"][2]}, {"dtype", row.value("dtype", "bf16")}};
    Json operators = Json::array({gemm});
    if (row.contains("copied_MiB")) {
        const double bytes = row["copied_MiB"].get<double>() * 1024 * 1024;
        operators.push_back({{"name", "copy"},
                             {"type", "memory_bound"},
                             {"read_bytes", bytes},
                             {"write_bytes", bytes},
                             {"needs", {"gemm"}}});
    }
    return {{"operators", operators}};
}

struct Errors {
    ErrorSummary steady, once, paused;
};

/// Of a GEMM, and its part of the pause behind some of them.
double error_of_run(const Json& workload, const std::string& topology, const std::string& repeat,
                    const Json& row) {
    Json config{{"topology", topology}, {"schedule", "serial"}, {"workload", workload}, {"repeat", repeat}};
    const TemporaryFolder folder;
    const double pause_us = row.value("pause_ms", 0.0) * 1000 / row.value("iterations", 1.0);
    if (pause_us > 0) {
        config["host"] = folder / "paused.json";
        std::ofstream(folder / "paused.json")
            << Json{{"schema", 1},
                    {"name", "paused"},
                    {"description", "A loop with pauses."},
                    {"threads", "one"},
                    {"pause_us", {{"value", pause_us}, {"source", "traces: the loop's pause_ms"}}}};
    }
    // One GPU, which no other one of its kind waits for
    if (topology == "h100_8") config["what_if"] = {{"device.energy.power_spread", 0}};
    const Seconds predicted = predict(resolve(read_run_config(config, "loops"), shipped)).makespan;
    return (to_microseconds(predicted) + pause_us) / row["steady_us"].get<double>() - 1;
}

/// Of iterations of 150 us and more: launches and what stays in caches between iterations decide shorter ones.
Errors errors_of(const std::string& file, const std::string& topology, const std::string& dtype) {
    std::ifstream lines(std::filesystem::path(OVERLAP_SOURCE_DIR) / "traces" / file);
    std::vector<double> steady, once, paused;
    for (std::string line; std::getline(lines, line);) {
        const Json row = parse_json(line, file);
        if (row.value("kind", "") != "loop" || row.value("dtype", dtype) != dtype) continue;
        const Json workload = workload_of(row);
        if (workload.is_null() || row["steady_us"].get<double>() < 150) continue;
        if (row.contains("pause_ms")) {
            paused.push_back(error_of_run(workload, topology, "steady", row));
            continue;
        }
        steady.push_back(error_of_run(workload, topology, "steady", row));
        once.push_back(error_of_run(workload, topology, "once", row));
    }
    return {summarise(steady), summarise(once), summarise(paused)};
}

}  // namespace

TEST_CASE(
    "loops in a steady state are predicted 1.6 % off on H200, 2.6 % on H100; as single runs 15 and 12 %") {
    struct Machine {
        std::string traces, topology;
        double steady, p90, once, paused;
    };
    for (const Machine& machine : {Machine{"h200_1", "h200_2", 0.017, 0.04, 0.13, 0.012},
                                   {"h100_1", "h100_8", 0.027, 0.05, 0.1, 0.025}}) {
        INFO(machine.traces);
        const Errors errors = errors_of(machine.traces + "/pytorch/loops.jsonl", machine.topology, "bf16");
        CHECK(errors.steady.count == 21);
        CHECK(errors.steady.mean < machine.steady);
        CHECK(errors.steady.p90 < machine.p90);
        CHECK(errors.once.mean > machine.once);
        // Pauses of 0.2 to 3 ms after GEMMs of 2 to 5 ms: the mechanism, and no constant, is from elsewhere.
        INFO("with pauses: " << errors.paused.mean << ", p90 " << errors.paused.p90);
        CHECK(errors.paused.count == 12);
        CHECK(errors.paused.mean < machine.paused);
    }
}

}  // namespace overlap::test::steady_loops_test
