#include "sim/calibrate/problems/problems.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "models/cost_model_registry.hpp"
#include "sim/calibrate/recipes/gemm_recipes.hpp"
#include "sim/core/csv_table.hpp"
#include "sim/engine/engine.hpp"
#include "sim/pricing/effects.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

const std::string gemm_side = "GEMM beside the library", library_side = "library beside a GEMM",
                  longer = "  longer than the GEMM", shorter = "  shorter than the GEMM (not fitted)",
                  wall = "both, wall time (not fitted)";
constexpr int ranks = 8;
constexpr double shortest_m = 2048;
/// RCCL uses no more where NCCL_MAX_NCHANNELS allows more: time and factors stay those of 56.
constexpr int most_channels = 56;
/// The GEMM's stream spins for 100,000 cycles first, which is in its time (at 2.1 GHz; traces/published/README.md).
constexpr double spin_ms = 0.048;

struct GemmAndCollective {
    GemmShape gemm;
    CollectiveKernelWork collective;
    double spin_ms = 0;

    std::string name() const {
        return shape_name(gemm) + " beside " + name_of(collective.kind) + " of " +
               std::to_string(std::llround(collective.operand.si() / (1 << 20))) + " MiB by " +
               (collective.cus > 0 ? std::to_string(collective.cus) : "all") + " channels";
    }
    auto setting() const {
        return std::tuple(gemm.m, gemm.n, gemm.k, collective.kind, collective.operand.si(), collective.cus);
    }
};

/// Milliseconds.
struct Times {
    double gemm_alone, collective_alone, gemm, collective, wall;
};

Times simulate(const GemmAndCollective& pair, const Machine& machine) {
    thread_local const CostModels models;
    const auto run = [&](bool gemm, bool collective) {
        TaskGraph graph;
        for (int gpu = 0; gpu < ranks; ++gpu) {
            if (gemm) graph.add({.work = pair.gemm, .gpu = gpu, .stream = compute_stream}, {});
            if (!collective) continue;
            graph.add({.work = pair.collective, .gpu = gpu, .stream = transfer_stream(0), .priority = 1}, {});
        }
        const Costs costs = price(graph, Workload(), machine, models, Effects());
        return make_engine("flow")->run(graph, costs, machine.resources, 0).tasks;
    };
    const auto ms = [](const TaskTimes& times) { return 1e3 * times.end.si(); };
    const auto both = run(true, true);
    Times times{ms(run(true, false)[0]), ms(run(false, true)[0]), ms(both[0]), ms(both[1]), 0};
    times.wall = std::max(times.gemm + pair.spin_ms, times.collective);
    return times;
}

/// A row of the table.
struct Cells {
    const CsvTable& table;
    std::size_t row;

    const std::string& operator[](const char* column) const { return table.cell(row, column); }
    /// 0 where the cell is empty, or 0.
    double number(const char* column) const {
        const std::string& cell = (*this)[column];
        return cell.empty() || cell == "0" ? 0 : table.number(row, column);
    }
    bool is_usable() const {
        return (*this)["backend"] == "torch" && number("m") >= shortest_m && number("comm_bytes") > 0 &&
               number("gemm_alone_ms") > 0;
    }
};

GemmAndCollective pair_of(const Cells& cells) {
    const auto side = [&](const char* column) { return static_cast<std::int64_t>(cells.number(column)); };
    GemmAndCollective pair{{side("m"), side("n"), side("k"), DType::bf16, false}, {}, 0};
    const bool gathers = cells["collective"] == "all_gather";
    pair.collective.kind = gathers ? CollectiveKind::all_gather : CollectiveKind::all_reduce;
    pair.collective.operand = Bytes(cells.number("comm_bytes") * (gathers ? ranks : 1));
    pair.collective.cus = std::min(static_cast<int>(cells.number("channels")), most_channels);
    if (cells.number("sleep") > 0) pair.spin_ms = spin_ms;
    return pair;
}

void add_rows(const Cells& cells, double weight, DeviceProblem& problem) {
    const GemmAndCollective pair = pair_of(cells);
    const auto add = [&](std::vector<std::string> classes, double measured, double in_fit, auto predicted) {
        problem.rows.push_back({.name = pair.name(),
                                .family = pair.name(),
                                .classes = std::move(classes),
                                .measured = measured,
                                .weight = in_fit,
                                .predict = [pair, predicted](const Machines& machines) {
                                    return predicted(simulate(pair, machine_of(machines, ranks)));
                                }});
    };
    const double gemm_alone = cells.number("gemm_alone_ms"), alone = cells.number("comm_alone_ms"),
                 beside = cells.number("comm_beside_ms"), both = cells.number("wall_ms");
    add({gemm_side}, (cells.number("gemm_beside_ms") - pair.spin_ms) / gemm_alone, weight,
        [](const Times& times) { return times.gemm / times.gemm_alone; });
    if (alone > 0 && beside > 0)
        add({library_side, alone > gemm_alone ? longer : shorter}, beside / alone,
            alone > gemm_alone ? weight : 0,
            [](const Times& times) { return times.collective / times.collective_alone; });
    if (both > 0) add({wall}, both, 0, [](const Times& times) { return times.wall; });
}

std::vector<DeviceParameter> library_parameters() {
    const Range share{1e-3, 0.95}, share_of_each{1e-3, 0.3};
    return {
        {"interference", "gemm_slowed_beside_library", 0.1, 2, share_of_each,
         "estimate: 8192^3 by a kernel whose tiles go to any unit takes 1.10 times as long beside 2 channels"},
        {"interference", "collectives_slowed_beside_gemms", 0.5, 1.5, share,
         "estimate: 4 to 32 channels lose half of their rate"},
        {"interference",
         "late_ranks_waves",
         1,
         2,
         {0.01, 16},
         "estimate: a GEMM of one wave, beside which an all-reduce takes 1.3 to 1.8 times as long"}};
}

}  // namespace

bool has_library_tables(const fs::path& data, const std::string& device) {
    return fs::exists(data / "overlap" / (device + "_gemm_beside_rccl.csv"));
}

DeviceProblem library_beside_gemms(const fs::path& data, const std::string& device) {
    const std::string file = "overlap/" + device + "_gemm_beside_rccl.csv";
    DeviceProblem problem{.name = "library beside GEMMs",
                          .parameters = library_parameters(),
                          .classes = {gemm_side, library_side, longer, shorter, wall},
                          .families = "GEMM shape, size and channels of the collective",
                          .file = published_table(file),
                          .date = "2026-03-25",
                          .unit = "1; ms"};
    const CsvTable table = read_csv_table(data / file);
    std::vector<Cells> rows;
    for (std::size_t row = 0; row < table.rows(); ++row)
        if (const Cells cells{table, row}; cells.is_usable()) rows.push_back(cells);
    // Repetitions of one setting count as one row.
    std::map<decltype(GemmAndCollective().setting()), int> repetitions;
    for (const Cells& cells : rows) ++repetitions[pair_of(cells).setting()];
    for (const Cells& cells : rows)
        add_rows(cells, 1 / std::sqrt(repetitions.at(pair_of(cells).setting())), problem);
    return problem;
}

}  // namespace overlap
