// Tables of published figures that sim reproduce has only a part of. Numbers
// are typed from the sources named.
#include <catch2/catch.hpp>

#include "models/cost_model_registry.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap::test::published_test {
namespace {

ConfigFolder configs() {
    return ConfigFolder(std::filesystem::path(OVERLAP_SOURCE_DIR) / "configs");
}

constexpr double MiB = 1048576.0;

}  // namespace

// AMDResearch/AMD-DMA-Latte PERFORMANCE.md, shares of one copy in percent; the device's four latencies and
// its ramp are a fit to this table, so this checks that the model can say what
// was measured. Tolerance: 3 points.
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
    const DeviceDma& dma = *topology.device().dma;
    for (const Row& row : table) {
        const CopyWork copy{0, 1, Bytes(row.bytes), Bytes(row.bytes), Agent::dma, Direction::pull, 0};
        const Cost cost = CostModels().cost(Task{copy, 1, transfer_stream(0)}, machine);
        const Seconds whole = isolated_time(cost, machine.resources);
        const auto share = [&](Seconds part) { return 100 * (part / whole); };
        INFO(row.bytes << " bytes");
        CHECK(share(dma.phases.command) == Approx(row.control).margin(3));
        CHECK(share(dma.phases.schedule) == Approx(row.schedule).margin(3));
        CHECK(share(whole - dma.phases.command - dma.phases.schedule - dma.phases.completion) ==
              Approx(row.copy).margin(3));
        CHECK(share(dma.phases.completion) == Approx(row.sync).margin(3));
    }
}

}  // namespace overlap::test::published_test
