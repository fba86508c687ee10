// DMA copies of an H200 node against our own measurements (traces/h200_4/microbench), pattern by pattern. The
// device file takes its values from single pairs of GPUs; the patterns of three and four GPUs are predicted.
#include <catch2/catch.hpp>
#include <fstream>
#include <iostream>

#include "sim/effects.hpp"
#include "sim/engine/engine.hpp"
#include "tests/test_support.hpp"

using namespace overlap;
using namespace overlap::test;

namespace {

/// Who copies from whom, in the order in which the host enqueued the copies; those of a lane one after
/// another.
struct Copy {
    int src, dst, lane;
};

std::vector<Copy> copies_of(const Json& row) {
    const std::string pattern = row["pattern"];
    const bool pull = row["transfer"] == "pull";
    const int gpus = row["gpus"], chunks = row["chunks"];
    std::vector<Copy> result;
    const auto add = [&](int own, int peer, int lane) {
        for (int chunk = 0; chunk < chunks; ++chunk)
            result.push_back({pull ? peer : own, pull ? own : peer, lane});
    };
    for (int own = 0; own < gpus; ++own) {
        if ((pattern == "pair" || pattern == "one_with_all") && own > 0) break;
        if (pattern == "pair" || pattern == "both_ways" || pattern == "ring") {
            add(own, (own + 1) % gpus, 0);
        } else if (pattern == "all_with_one") {
            if (own > 0) add(own, 0, 0);
        } else {
            for (int step = 1; step < gpus; ++step)
                add(own, (own + step) % gpus, pattern == "rotation" ? 0 : step);
        }
    }
    return result;
}

double predicted_us(const Json& row, const Machine& machine) {
    const bool pull = row["transfer"] == "pull";
    TaskGraph graph;
    for (const Copy& copy : copies_of(row)) {
        Task task = copy_task(copy.src, copy.dst, row["size"].get<double>(), Agent::dma,
                              pull ? Direction::pull : Direction::push);
        task.stream = 100 + copy.lane;
        graph.add(task, {});
    }
    const std::vector<Cost> costs = price(graph, Workload(), machine, CostModels(), Effects());
    std::vector<double> makespans;
    for (std::uint64_t seed = 0; seed < 101; ++seed)
        makespans.push_back(
            to_microseconds(make_engine("flow")->run(graph, costs, machine.resources, seed).makespan));
    std::sort(makespans.begin(), makespans.end());
    return makespans[50];
}

struct Errors {
    std::vector<double> all;
    void add(double predicted, double measured) { all.push_back(std::abs(predicted / measured - 1)); }
    double mean() const {
        double sum = 0;
        for (const double error : all) sum += error;
        return sum / static_cast<double>(all.size());
    }
    double p90() {
        std::sort(all.begin(), all.end());
        return all[all.size() * 9 / 10];
    }
};

}  // namespace

TEST_CASE("DMA copies of every pattern on 2, 3 and 4 H200, by size") {
    const std::map<int, Machine> machines = [] {
        std::map<int, Machine> result;
        for (const int gpus : {2, 4}) result.emplace(gpus, shipped_machine("h200_" + std::to_string(gpus)));
        return result;
    }();
    std::map<std::string, Errors> by_pattern;
    Errors large, chunked, medium, small;
    for (const std::string file : {"two_gpus", "four_gpus"}) {
        std::ifstream in(source_folder / "traces" / "h200_4" / "microbench" / (file + ".jsonl"));
        for (std::string line; std::getline(in, line);) {
            const Json row = parse_json(line, file);
            if (row["kind"] != "peer_copy" || row["agent"] != "dma" || row["call"] != "peer" ||
                row["enqueue"] != "lanes" || row["gemms"] != 0 || row["row"] != 0 || row["pass"] != 1)
                continue;
            const Machine& machine = machines.at(row["gpus"] == 2 ? 2 : 4);
            const double measured = row["median"], size = row["size"];
            const double predicted = predicted_us(row, machine);
            const std::string name =
                row["transfer"].get<std::string>() + " " + row["pattern"].get<std::string>();
            if (row["chunks"] != 1) {
                chunked.add(predicted, measured);
                continue;
            }
            if (size >= 16e6) by_pattern[name].add(predicted, measured);
            (size >= 16e6 ? large : size >= 1048576 ? medium : small).add(predicted, measured);
        }
    }
    REQUIRE(large.all.size() >= 60);
    REQUIRE(std::min({chunked.all.size(), medium.all.size(), small.all.size()}) >= 20);
    for (auto& [name, errors] : by_pattern)
        std::cout << name << ": " << errors.all.size() << " cases from 16 MiB, mean error "
                  << 100 * errors.mean() << " %, p90 " << 100 * errors.p90() << " %\n";
    const auto print = [](const std::string& name, Errors& errors) {
        std::cout << name << ": mean " << 100 * errors.mean() << " %, p90 " << 100 * errors.p90() << " %\n";
    };
    print("from 16 MiB", large);
    print("1 to 4 MiB", medium);
    print("below 1 MiB", small);
    print("chained chunks", chunked);
    CHECK(large.mean() <= 0.05);
    CHECK(large.p90() <= 0.12);
    // Known gaps, to be gone one day: commands of several copies of one engine overlap in part, pulls of 4 to
    // 64 KiB have a mode at 12 us, and chunks in four lanes at once block each other more than here.
    CHECK(medium.mean() > 0.05);
    CHECK(small.mean() > 0.12);
    CHECK(chunked.p90() > 0.12);
}
