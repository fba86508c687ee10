// Collectives of RCCL and NCCL alone, against public tables: lines drawn through two sizes, tables of all sizes.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "models/cost_model_registry.hpp"
#include "sim/core/csv_reader.hpp"
#include "sim/core/error_summary.hpp"
#include "sim/engine/engine.hpp"
#include "sim/pricing/effects.hpp"
#include "tests/public_data.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::library_lines_test {
namespace {

using test::public_data;

constexpr double mebi = 1 << 20;

double simulated_us(const Machine& machine, CollectiveKind kind, double bytes) {
    static const CostModels models;
    TaskGraph graph;
    for (int gpu = 0; gpu < machine.topology.gpus(); ++gpu)
        graph.add(
            {.work = CollectiveKernelWork{kind, Bytes(bytes), 0}, .gpu = gpu, .stream = transfer_stream(0)},
            {});
    const Costs costs = price(graph, Workload(), machine, models, Effects());
    return 1e6 * make_engine("flow")->run(graph, costs, machine.resources, 0).tasks[0].end.si();
}

/// Measured microseconds by bytes: rows of `file` whose cells are those of `where`, from `from` bytes on.
std::map<double, double> measured(const std::string& file, const std::map<std::string, std::string>& where,
                                  const std::string& time, double from) {
    std::map<double, double> result;
    CsvRow columns;
    read_csv(public_data() / "comm" / file, [&](const CsvRow& row, std::size_t) {
        if (columns.empty()) {
            columns = row;
            return;
        }
        const auto cell = [&](const std::string& name) {
            const auto column = std::find(columns.begin(), columns.end(), name) - columns.begin();
            return row.at(static_cast<std::size_t>(column));
        };
        for (const auto& [name, text] : where)
            if (cell(name) != text) return;
        const double bytes = std::stod(cell("bytes"));
        if (bytes >= from) result[bytes] = std::stod(cell(time));
    });
    return result;
}

struct LineClaim {
    std::string machine, file;
    std::map<std::string, std::string> where;
    std::string time;
    CollectiveKind kind;
    double large, middle, small;  ///< mean errors from 16 MiB, from 1 to 16 MiB, from 1 KiB to 1 MiB
};

}  // namespace

TEST_CASE("collectives of RCCL and NCCL alone take as long as in public tables") {
    const auto nccl = [](const std::string& gpu, int gpus, const std::string& op, CollectiveKind kind,
                         const std::string& dtype, double large, double middle, double small) {
        return LineClaim{gpu + "_" + std::to_string(gpus),
                         gpu + "_nccl_2.29.2_collectives.csv",
                         {{"op", op}, {"dtype", dtype}, {"num_gpus", std::to_string(gpus)}},
                         "us",
                         kind,
                         large,
                         middle,
                         small};
    };
    using enum CollectiveKind;
    const std::string rccl = "mi300x_rccl_allreduce_8gpu.csv",
                      quick = "mi300x_allreduce_rccl_vs_quickreduce_us.csv";
    const std::vector<LineClaim> claims{
        {"mi300x_8", rccl, {{"mode", "eager"}}, "oop_us", all_reduce, 0.005, 0.01, 0.035},
        {"mi300x_8", quick, {{"gpus", "8"}}, "rccl_us", all_reduce, 0.01, 0.03, 0.21},  // in no line
        // The tables' own rows.
        nccl("h100", 8, "all_reduce", all_reduce, "half", 0.001, 0.001, 0.005),
        nccl("h200", 8, "reduce_scatter", reduce_scatter, "half", 0.001, 0.001, 0.035),
        nccl("h200", 4, "all_reduce", all_reduce, "half", 0.001, 0.001, 0.025),
        // The same bytes as int8, which no table has; collectives that add take longer for int8.
        nccl("h100", 8, "all_gather", all_gather, "int8", 0.01, 0.015, 0.025),
        nccl("h200", 8, "all_gather", all_gather, "int8", 0.01, 0.10, 0.07),
        nccl("h200", 4, "all_gather", all_gather, "int8", 0.005, 0.005, 0.015),
        nccl("b200", 8, "all_gather", all_gather, "int8", 0.01, 0.03, 0.045),
        nccl("b300", 8, "alltoall", all_to_all, "int8", 0.005, 0.02, 0.085)};
    for (const LineClaim& claim : claims) {
        const Machine machine = test::shipped_machine(claim.machine);
        std::vector<double> large, middle, small;
        for (const auto& [bytes, us] : measured(claim.file, claim.where, claim.time, 1024))
            (bytes >= 16 * mebi ? large
             : bytes >= mebi    ? middle
                                : small)
                .push_back(simulated_us(machine, claim.kind, bytes) / us - 1);
        REQUIRE(large.size() >= 3);
        REQUIRE(middle.size() >= 4);
        REQUIRE(small.size() >= 5);
        INFO(claim.file << ", " << name_of(claim.kind) << ": " << summarise(large).mean << ", "
                        << summarise(middle).mean << ", " << summarise(small).mean);
        CHECK(summarise(large).mean <= claim.large);
        CHECK(summarise(middle).mean <= claim.middle);
        CHECK(summarise(small).mean <= claim.small);
    }
}

}  // namespace overlap::test::library_lines_test
