// Energy of simulated GEMMs and copies on H200, time and all, against what the GPUs' counters say
// (traces/h200_2/energy). The constants were fitted to the power of some of these at their measured rates;
// rates, few units and the power limit were not.
#include <catch2/catch.hpp>
#include <iostream>

#include "models/cost_model_registry.hpp"
#include "sim/calibrate/measurements/measurement_file.hpp"
#include "sim/engine/engine.hpp"
#include "sim/run/observe.hpp"
#include "sim/topology/device_losses.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::h200_energy_test {
namespace {

/// Predicted and measured J of one operation of one GPU.
struct Compared {
    std::string group, name;
    double predicted = 0, measured = 0;
};

Energy simulated(const TaskGraph& graph, const Machine& machine) {
    std::vector<Cost> costs;
    for (TaskId id = 0; id < graph.size(); ++id) costs.push_back(CostModels().cost(graph[id], machine));
    return energy_of(graph, costs, make_engine("flow")->run(graph, costs, machine.resources), machine)
        .value();
}

/// Without a pause: what two GPUs take that exchange so much.
Compared exchange(const Json& row, const Machine& machine) {
    const Agent agent = row["agent"] == "dma" ? Agent::dma : Agent::cu;
    const Direction direction = row["transfer"] == "pull" ? Direction::pull : Direction::push;
    TaskGraph graph;
    for (int gpu = 0; gpu < 2; ++gpu)
        graph.add(
            copy_task(gpu, 1 - gpu, row["size"].get<double>(), agent, direction, row["blocks"].get<int>()));
    const double joules = row["energy_J"][0].get<double>() + row["energy_J"][1].get<double>();
    return {agent == Agent::dma ? "copies by DMA" : "copies by kernels", row["transfer"],
            simulated(graph, machine).total().si() / 2, joules / 2 / row["operations"].get<double>()};
}

/// On two GPUs alike. Without a pause at the power limit, or on some units; or in bursts: what it takes more
/// than nothing does.
Compared gemm(const Json& row, Machine machine) {
    GemmShape shape{row["m"], row["n"], row["k"]};
    for (const std::string& name : dtype_names)
        if (row["dtype"] == name) shape.dtype = static_cast<DType>(&name - dtype_names.data());
    TaskGraph graph;
    for (int gpu = 0; gpu < 2; ++gpu)
        graph.add({.work = shape, .gpu = gpu, .gemm_cus = row["units"].get<int>()});
    const bool bursts = row.value("pause_ms", 0) > 0;
    if (!bursts) machine.sustained = Seconds(4);
    const Energy energy = simulated(graph, machine);
    const double operations = row["operations"].get<double>(), joules = row["energy_J"][0].get<double>();
    Compared result{"GEMMs at the power limit", shape_name(shape) + " " + name_of(shape.dtype),
                    energy.total().si() / 2, joules / operations};
    if (row["units"] != 0) result.group = "GEMMs on some units";
    if (bursts) {
        const Watts idle = machine.topology.device().energy->idle;
        result.group = "GEMMs in bursts";
        result.predicted -= energy.idle.si() / 2;
        result.measured -= (idle * Seconds(row["seconds"].get<double>())).si() / operations;
    }
    return result;
}

std::vector<Compared> compare(const std::string& file) {
    const Machine two = shipped_machine("h200_2");
    std::vector<Compared> all;
    for (const Measurement& measurement :
         read_measurements(source_folder / "traces/h200_2/energy" / file).measurements) {
        const Json& row = measurement.fields;
        if (row["work"] == "peer") all.push_back(exchange(row, two));
        if (row["work"] == "gemm") all.push_back(gemm(row, two));
    }
    return all;
}

}  // namespace

TEST_CASE("H200: joules of simulated copies and GEMMs are those measured") {
    struct Bound {
        double mean, most;
        int count;
    };
    const std::map<std::string, Bound> bounds{{"copies by DMA", {0.007, 0.011, 4}},
                                              {"copies by kernels", {0.027, 0.041, 12}},
                                              {"GEMMs in bursts", {0.04, 0.15, 22}},
                                              {"GEMMs at the power limit", {0.07, 0.22, 20}},
                                              {"GEMMs on some units", {0.095, 0.12, 8}}};
    std::map<std::string, std::vector<double>> errors;
    for (const std::string file : {"energy.jsonl", "bursts.jsonl"})
        for (const Compared& one : compare(file)) {
            const double error = one.predicted / one.measured - 1;
            errors[one.group].push_back(std::abs(error));
            std::cout << one.group << ", " << one.name << ": " << one.measured << " J, predicted "
                      << 100 * error << " %\n";
        }
    CHECK(errors.size() == bounds.size());
    for (const auto& [group, found] : errors) {
        INFO(group);
        double sum = 0, most = 0;
        for (const double error : found) sum += error, most = std::max(most, error);
        REQUIRE(bounds.contains(group));
        CHECK(static_cast<int>(found.size()) == bounds.at(group).count);
        CHECK(sum / static_cast<double>(found.size()) <= bounds.at(group).mean);
        CHECK(most <= bounds.at(group).most);
        std::cout << group << ": mean " << sum / static_cast<double>(found.size()) << ", most " << most
                  << '\n';
    }
}

}  // namespace overlap::test::h200_energy_test
