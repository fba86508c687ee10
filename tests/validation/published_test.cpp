// Published figures against predictions. Numbers are typed from the sources named; nothing here was fitted to
// them unless the case says so.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "models/cost_model_registry.hpp"
#include "sim/run.hpp"

using namespace overlap;

namespace {

ConfigFolder configs() {
    return ConfigFolder(std::filesystem::path(OVERLAP_SOURCE_DIR) / "configs");
}

RunConfig config(const std::string& topology, const std::string& schedule) {
    RunConfig result;
    result.origin = "test";
    result.topology = topology;
    result.schedule = schedule;
    return result;
}

RunResult run_on(const std::string& topology, const std::string& schedule, const std::string& workload,
                 const std::string& agent = "dma") {
    RunConfig given = config(topology, schedule);
    given.workload = workload;
    given.params["agent"] = agent;
    return run(resolve(given, configs()));
}

/// Time of one collective alone; `operand` as CollectiveWork has it.
double collective_us(const std::string& topology, const std::string& kind, double operand,
                     const std::string& algorithm, const std::string& agent = "dma") {
    RunConfig given = config(topology, "serial");
    given.params = {{"algorithm", algorithm}, {"agent", agent}};
    given.workload = {
        {"operators", {{{"name", "c"}, {"type", "collective"}, {"collective", kind}, {"bytes", operand}}}}};
    return to_microseconds(run(resolve(given, configs())).makespan);
}

constexpr double MiB = 1048576.0;
const std::vector<std::string> overlapping{"shard_p2p",          "shard_direct",     "ring_chunked",
                                           "uniform_fused_1d",   "hetero_fused_1d",  "uniform_unfused_1d",
                                           "hetero_unfused_1d",  "uniform_fused_2d", "hetero_fused_2d",
                                           "uniform_unfused_2d", "hetero_unfused_2d"};

}  // namespace

// FiCCO (arXiv 2512.10236): up to 3.9x slower on a mesh, where one or two of seven links carry data at a
// time.
TEST_CASE("one peer at a time leaves a mesh idle, but not a switch") {
    const auto ratio = [](const std::string& topology) {
        const std::string workload = "llama3_70b_gate_up_forward";
        return run_on(topology, "shard_p2p", workload).comm /
               run_on(topology, "hetero_fused_1d", workload).comm;
    };
    const double mesh = ratio("mi300x_8");
    CHECK(mesh >= 3.3);
    CHECK(mesh <= 7.0);
    CHECK(ratio("h200_8") <= 1.15);
}

// FiCCO: ideal up to 1.7x, achieved up to 1.6x on its sixteen scenarios; DMA chosen to keep contention small.
TEST_CASE("the FiCCO scenarios span the published speed-ups, and DMA wins under overlap") {
    double smallest_ideal = 10, largest_ideal = 0, largest_achieved = 0;
    int scenarios = 0;
    for (int g = 1; g <= 16; ++g) {
        const std::string workload = "ficco_g" + std::to_string(g);
        INFO(workload);
        double ideal = 0;
        std::map<std::string, Seconds> best;
        for (const std::string agent : {"dma", "cu"}) {
            best[agent] = Seconds(1e9);
            for (const std::string& schedule : overlapping) {
                const RunResult result = run_on("mi300x_8", schedule, workload, agent);
                CHECK(result.makespan.si() >= result.ideal.si() * (1 - 1e-9));
                best[agent] = std::min(best[agent], result.makespan);
                if (agent == "dma") {
                    ideal = result.serial / result.ideal;
                    largest_achieved = std::max(largest_achieved, result.speedup);
                }
            }
        }
        CHECK(best["dma"] < best["cu"]);
        smallest_ideal = std::min(smallest_ideal, ideal);
        largest_ideal = std::max(largest_ideal, ideal);
        ++scenarios;
    }
    CHECK(scenarios == 16);
    CHECK(smallest_ideal == Approx(1.1).margin(0.05));
    CHECK(largest_ideal == Approx(1.8).margin(0.05));
    CHECK(largest_achieved >= 1.45);
    CHECK(largest_achieved <= largest_ideal);
}

// AMDResearch/AMD-DMA-Latte PERFORMANCE.md, shares of one copy in percent; the device's four latencies and
// its ramp are a fit to this table, so this checks that the model can say what was measured. Tolerance: 3
// points.
TEST_CASE("phase shares of a DMA copy on the MI300X") {
    struct Row {
        double bytes, control, schedule, copy, sync;
    };
    const std::vector<Row> table{
        {1024, 5, 31, 29, 35},   {4096, 5, 30, 30, 36},   {16384, 4, 30, 33, 33},  {32768, 4, 28, 36, 32},
        {65536, 4, 23, 46, 27},  {131072, 7, 20, 51, 22}, {262144, 3, 17, 62, 18}, {524288, 2, 13, 72, 13},
        {MiB, 1, 10, 79, 10},    {2 * MiB, 1, 5, 89, 5},  {4 * MiB, 1, 3, 93, 3},  {8 * MiB, 0, 1, 97, 1},
        {16 * MiB, 0, 1, 98, 1}, {32 * MiB, 0, 0, 99, 0},
    };
    const Topology topology = configs().topology("mi300x_8");
    const Machine machine{topology, ResourceTable(topology), {}, {}};
    const DeviceSpec::Dma& dma = topology.device().dma;
    for (const Row& row : table) {
        const CopyWork copy{0, 1, Bytes(row.bytes), Bytes(row.bytes), Agent::dma, Direction::pull, 0};
        const Cost cost = CostModels().cost(Task{copy, 1, transfer_stream(0)}, machine);
        const Seconds whole = isolated_time(cost, machine.resources);
        const auto share = [&](Seconds part) { return 100 * (part / whole); };
        INFO(row.bytes << " bytes");
        CHECK(share(dma.command) == Approx(row.control).margin(3));
        CHECK(share(dma.schedule) == Approx(row.schedule).margin(3));
        CHECK(share(whole - dma.command - dma.schedule - dma.completion) == Approx(row.copy).margin(3));
        CHECK(share(dma.completion) == Approx(row.sync).margin(3));
    }
}

// ROCm blog "Understanding RCCL Bandwidth and xGMI Performance on MI300X": 46.5 GB/s a link, 315-326 GB/s a
// GPU with all 56 links busy.
TEST_CASE("link and all-to-all rates of the MI300X mesh") {
    const double bytes = 8 * 256 * MiB;  // 256 MiB on each link: launches are half a percent
    for (const std::string agent : {"dma", "cu"}) {
        INFO(agent);
        const double us = collective_us("mi300x_8", "all_to_all", bytes, "direct", agent);
        const double per_gpu = 7.0 / 8.0 * bytes / us * 1e-3;  // GB/s
        CHECK(per_gpu >= 315);
        CHECK(per_gpu <= 326);
        CHECK(per_gpu / 7 == Approx(46.5).epsilon(0.02));
    }
}

// ryanswann-amd/rocm-libraries data/rccl_master_sweep.csv. The lines were put through 16 and 256 MiB; 64 MiB
// and 1 GiB were not used. Tolerance 10 % (as published runs of RCCL differ).
TEST_CASE("RCCL-like collectives on eight MI300X") {
    struct Row {
        std::string kind;
        double operand, us;
    };
    const std::vector<Row> table{
        {"all_gather", 8 * 16 * MiB, 561},   {"all_gather", 8 * 64 * MiB, 1890},
        {"all_gather", 8 * 256 * MiB, 7180}, {"all_gather", 8 * 1024 * MiB, 28400},
        {"all_reduce", 16 * MiB, 193},       {"all_reduce", 64 * MiB, 476},
        {"all_reduce", 256 * MiB, 1567},     {"all_reduce", 1024 * MiB, 6000},
    };
    for (const Row& row : table) {
        INFO(row.kind << " of " << row.operand / MiB << " MiB");
        CHECK(collective_us("mi300x_8", row.kind, row.operand, "library") == Approx(row.us).epsilon(0.10));
    }
}

// ROCm/iris examples 02 and 03: remote reads by kernels stop at 149 GB/s a GPU, writes reach 323.
TEST_CASE("kernel copies push faster than they pull on the MI300X") {
    const double bytes = 8 * 256 * MiB;
    RunConfig given = config("mi300x_8", "serial");
    given.workload = {
        {"operators",
         {{{"name", "c"}, {"type", "collective"}, {"collective", "all_gather"}, {"bytes", bytes}}}}};
    const auto rate = [&](const std::string& transfer) {
        given.params = {{"agent", "cu"}, {"transfer", transfer}};
        return 7.0 / 8.0 * bytes / run(resolve(given, configs())).makespan.si() * 1e-9;
    };
    CHECK(rate("pull") == Approx(149).epsilon(0.02));
    CHECK(rate("push") == Approx(323).epsilon(0.02));
}
