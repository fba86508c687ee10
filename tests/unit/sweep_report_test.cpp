#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "sim/report/sweep/sweep_analysis.hpp"
#include "sim/report/sweep/sweep_report.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::sweep_report_test {
namespace {

struct Point {
    std::string workload, schedule, chunks, agent;
    double makespan_us, ideal_us, contention_us, comm_cus, staging_bytes;
    std::string error;
};

/// A row of points.csv: what is not in `Point` is 0.
std::string row_of(std::size_t number, const Point& point) {
    std::string line = std::to_string(number) + "," + point.workload + "," + point.schedule + "," +
                       point.chunks + "," + point.agent;
    for (std::size_t i = 0; i < column::count; ++i) {
        const double value = i == column::makespan         ? point.makespan_us
                             : i == column::ideal          ? point.ideal_us
                             : i == column::serial         ? 200
                             : i == column::speedup        ? 200 / point.makespan_us
                             : i == column::first_loss + 1 ? point.contention_us
                             : i == column::first_loss + 2
                                 ? point.makespan_us - point.ideal_us - point.contention_us
                             : i == column::comm_cus ? point.comm_cus
                             : i == column::staging  ? point.staging_bytes
                                                     : 0;
        line += "," + (point.error.empty() ? std::to_string(value) : "");
    }
    return line + "," + point.error + "\n";
}

SweepPoints read(const std::vector<Point>& points, std::size_t most = most_points_shown) {
    const TemporaryFolder folder;
    std::ofstream(folder / "sweep.json")
        << R"({"schema": 1, "name": "made_up", "version": "0", "points": 99, "axes": [{"fields": ["workload"], "values": []},
               {"fields": ["schedule", "params.chunks"], "values": []}, {"fields": ["params.agent"], "values": []}]})";
    std::ofstream csv(folder / "points.csv");
    csv << "point,workload,schedule,chunks,agent";
    for (const Metric& metric : sweep_metrics) csv << ',' << metric.name;
    csv << ",error\n";
    for (std::size_t i = 0; i < points.size(); ++i) csv << row_of(i, points[i]);
    csv.close();
    return read_sweep(folder / "", most);
}

// Two scenarios. In g2 "hetero" is best with 100 us; of "ring" the best has 120, of which 15 more contention
// and 5 more of the rest. In g10 "ring" is best and, but for a failure, alone.
const std::vector<Point> few{{"g10", "ring", "8", "dma", 150, 100, 0, 0, 0, ""},
                             {"g2", "ring", "10", "cu", 120, 90, 15, 16, 0, ""},
                             {"g2", "ring", "9", "dma", 130, 90, 0, 0, 5e6, ""},
                             {"g2", "hetero", "8", "cu", 100, 90, 0, 56, 8e6, ""},
                             {"g2", "hetero", "9", "cu", 125, 90, 0, 56, 4e6, ""},
                             {"g2", "hetero", "10", "dma", 130, 90, 0, 8, 2e6, ""},
                             {"g10", "hetero", "8", "cu", 0, 0, 0, 0, 0, "does not fit"}};

}  // namespace

TEST_CASE("names that begin with nan or inf are no numbers") {
    std::vector<Point> points;
    for (const std::string name :
         {"nano", "g2", "infiniband", "10x", "NaN", "-inf", "2x", "-1", ".5", "inf", "-"})
        points.push_back({name, "ring", "8", "dma", 150, 100, 0, 0, 0, ""});
    // Numbers by size, then texts as strverscmp sorts them: '-' is before
    // letters, capitals before small ones.
    CHECK(read(points).dimension("workload")->values == std::vector<std::string>{"-1", ".5", "2x", "10x", "-",
                                                                                 "-inf", "NaN", "g2", "inf",
                                                                                 "infiniband", "nano"});
}

TEST_CASE("a sweep is read by columns, values in their natural order") {
    const SweepPoints points = read(few);
    CHECK(points.read == 7);
    CHECK(points.failed == 1);
    CHECK(points.dimension("workload")->values == std::vector<std::string>{"g2", "g10"});
    CHECK(points.dimension("chunks")->values == std::vector<std::string>{"8", "9", "10"});
    CHECK(points.dimension("chunks")->choice);
    CHECK(points.dimension("chunks")->swept);
    CHECK(!points.dimension("workload")->choice);
    CHECK(points.scenarios == std::vector<std::string>{"g10", "g2"});
    CHECK(points.figure(3, column::makespan) == 100);
    CHECK(!points.ok(6));
    CHECK(std::isnan(points.figure(6, column::makespan)));
    CHECK(points.errors[points.error[6]] == "does not fit");
}

TEST_CASE("the best of a scenario, the runner-up, and what decides") {
    const std::vector<ScenarioBest> best = best_by_scenario(read(few));
    REQUIRE(best.size() == 2);
    CHECK(best[0].best == 0);
    CHECK(!best[0].runner_up);  // the other schedule failed
    CHECK(best[0].largest_loss == "fill/drain loss");
    CHECK(best[1].points == 5);
    CHECK(best[1].best == 3);
    CHECK(best[1].runner_up == 1);  // not row 4, which has the same schedule
    REQUIRE(best[1].decided_by);
    CHECK(best[1].decided_by->part == "contention loss");
    CHECK(best[1].decided_by->more_us == Approx(15));
    CHECK(choice_of(read(few), 1) == "ring, chunks 10, agent cu");

    std::vector<Point> equal = few;
    equal[1].makespan_us = 100;
    CHECK(!best_by_scenario(read(equal))[1].decided_by);
    std::vector<Point> other_ideal = few;
    other_ideal[1].ideal_us = 105;  // no more than 15 − 15 … of the rest
    other_ideal[1].contention_us = 5;
    CHECK(best_by_scenario(read(other_ideal))[1].decided_by->part == "ideal");
}

TEST_CASE("a Pareto front holds what no other point beats") {
    const SweepPoints points = read(few);
    CHECK(pareto_front(points, 1, column::comm_cus) == std::vector<std::size_t>{2, 1, 3});  // 0, 16, 56 units
    CHECK(pareto_front(points, 1, column::staging) == std::vector<std::size_t>{1, 3});      // 0, 8 MB
    CHECK(pareto_front(points, 0, column::comm_cus) == std::vector<std::size_t>{0});
    CHECK(best_by_schedule(points, 1) == std::vector<std::size_t>{3, 1});
}

TEST_CASE("a heat map has the best figure over all choices, of one operator on one machine") {
    const SweepPoints points = read(few);
    const Dimension &chunks = *points.dimension("chunks"), &agent = *points.dimension("agent");
    const HeatMap least = heat_map(points, chunks, &agent, column::makespan, 1);
    REQUIRE(agent.values == std::vector<std::string>{"cu", "dma"});
    CHECK(least.rows == std::vector<std::optional<std::size_t>>{3, 4, 1, std::nullopt, 2, 5});
    CHECK(shared_by(least) == "g2");
    const HeatMap most = heat_map(points, chunks, nullptr, column::speedup, 1);
    CHECK(most.rows == std::vector<std::optional<std::size_t>>{3, 4, 1});
    // An axis of scenarios is not fixed, nor is what changes with it.
    const HeatMap both = heat_map(points, *points.dimension("workload"), nullptr, column::makespan, 1);
    CHECK(both.fixed.empty());
    CHECK(both.rows == std::vector<std::optional<std::size_t>>{3, 0});
    const HeatMap one = heat_map(points, chunks, &agent, column::makespan, 0);
    CHECK(one.rows == std::vector<std::optional<std::size_t>>{std::nullopt, std::nullopt, std::nullopt, 0,
                                                              std::nullopt, std::nullopt});
    CHECK(first_dimensions(points).first->name == "workload");
    CHECK(first_dimensions(points).second->name == "schedule");
}

TEST_CASE("of more points than can be shown, the best of each group are kept") {
    // The best of (g10, ring, dma), (g2, ring, cu), (g2, ring, dma), (g2, hetero, cu), (g2, hetero, dma).
    SweepPoints points = read(few, 6);
    CHECK(points.kept == Kept::best_of_schedule_and_agent);
    CHECK(points.point == std::vector<std::uint64_t>{0, 1, 2, 3, 5, 6});
    CHECK(points.read == 7);
    CHECK(to_html(page_of(points), {})
              .find("this page holds only the best point of each scenario, schedule and agent") !=
          std::string::npos);
    points = read(few, 4);
    CHECK(points.kept == Kept::best_of_schedule);
    CHECK(points.point == std::vector<std::uint64_t>{0, 1, 3, 6});
    points = read(few, 2);
    CHECK(points.kept == Kept::best_of_scenario);
    CHECK(points.point == std::vector<std::uint64_t>{0, 3, 6});
    CHECK(best_by_scenario(points)[1].best == 1);
    CHECK_THAT(error_of([&] { read(few, 1); }), Catch::Contains("more than 1 scenarios"));
    CHECK(to_html(page_of(read(few)), {}).find("this page holds only") == std::string::npos);
}

TEST_CASE("scenarios are named by all that axes name, and no two columns have one label") {
    // Three what-ifs change together, two of which have the same last part; m goes with the workload.
    const TemporaryFolder folder;
    std::ofstream(folder / "sweep.json")
        << R"({"schema": 1, "name": "names", "version": "0", "points": 4, "axes": [
        {"fields": ["what_if.topology.fabric.0.bandwidth_GBps", "what_if.topology.fabric.1.bandwidth_GBps",
                    "what_if.device.dma.engine_GBps"], "values": []}, {"fields": ["workload"], "values": []},
        {"fields": ["params.chunks"], "values": []}]})";
    std::ofstream csv(folder / "points.csv");
    csv << "point,workload,m,schedule,chunks,what_if.topology.fabric.0.bandwidth_GBps,"
           "what_if.topology.fabric.1.bandwidth_GBps,what_if.device.dma.engine_GBps";
    for (const Metric& metric : sweep_metrics) csv << ',' << metric.name;
    csv << ",error\n";
    int point = 0;
    for (const std::string what_ifs : {"1x,1x,1x", "2x,4x,8x"})
        for (const std::string workload : {"g2,1024", "g3,2048"}) {
            csv << point << "," << workload << ",serial," << 2 + point << "," << what_ifs;
            for (std::size_t i = 0; i < column::count; ++i) csv << ",1";
            csv << ",\n";
            ++point;
        }
    csv.close();
    const SweepPoints points = read_sweep(folder / "");
    CHECK(points.dimension("what_if.topology.fabric.0.bandwidth_GBps")->label == "0.bandwidth_GBps");
    CHECK(points.dimension("what_if.topology.fabric.1.bandwidth_GBps")->label == "1.bandwidth_GBps");
    CHECK(points.dimension("what_if.device.dma.engine_GBps")->label == "engine_GBps");
    CHECK(points.scenarios ==
          std::vector<std::string>{"g2, 0.bandwidth_GBps 1x, 1.bandwidth_GBps 1x, engine_GBps 1x",
                                   "g3, 0.bandwidth_GBps 1x, 1.bandwidth_GBps 1x, engine_GBps 1x",
                                   "g2, 0.bandwidth_GBps 2x, 1.bandwidth_GBps 4x, engine_GBps 8x",
                                   "g3, 0.bandwidth_GBps 2x, 1.bandwidth_GBps 4x, engine_GBps 8x"});
    CHECK(choice_of(points, 1) == "chunks 3");  // the only schedule is no choice
}

TEST_CASE("plots of a sweep name what there is") {
    const SweepPoints points = read(few);
    SweepPlot map, misspelt, elsewhere;
    map.x = "chunks";
    map.y = "agent";
    map.value = "makespan_us";
    misspelt.x = "chunk";
    elsewhere.scenario = "g3";
    CHECK_THAT(to_gnuplot(points, map).text,
               Catch::Contains("'makespan [us]'") && Catch::Contains("'chunks'"));
    CHECK_THAT(error_of([&] { to_gnuplot(points, misspelt); }), Catch::Contains("'chunks'"));
    CHECK_THAT(error_of([&] { to_gnuplot(points, elsewhere); }), Catch::Contains("g2"));
    CHECK(gnuplot_quoted("it's") == "'it’s'");
}

}  // namespace overlap::test::sweep_report_test
