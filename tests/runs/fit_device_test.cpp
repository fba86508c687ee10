// Does the fit of a device's keys find what the rows were made with, and say what they can't tell?
#include "sim/calibrate/fits/fit_device.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "sim/topology/device_dma.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::fit_device_test {

using Catch::Contains;

namespace {

// Time of a copy: 4 us + bytes / 400 GB/s; noise of 2 % and, in every ninth row, of a factor 2.
constexpr double true_start = 4, true_rate = 400;

double copy_us(const Machines& machines, double megabytes) {
    const DeviceDma& dma = *machine_of(machines, 1).topology.device().dma;
    return to_microseconds(dma.phases.start + Bytes(megabytes * 1e6) / dma.engine);
}

DeviceProblem problem() {
    const Range positive_us{1e-3, 1e6};
    DeviceProblem problem{.name = "copies",
                          .parameters = {{"dma", "start_us", 2, 3, positive_us, "a guess"},
                                         {"dma", "engine_GBps", 250, 3, {1e-3, 1e7}, "a guess"},
                                         {"dma", "completion_us", 7, 2, positive_us, "another guess"}},
                          .rows = {},
                          .classes = {"small", "large", "none"},
                          .families = "size",
                          .file = "made up",
                          .date = "2026-11-21"};
    for (int i = 0; i < 90; ++i) {
        const double megabytes = 0.01 * (1 << (i % 10));
        const double noise = i % 9 == 0 ? 2 : 1 + 0.02 * ((i * 7 % 11) - 5) / 5;
        problem.rows.push_back(
            {.name = std::to_string(i),
             .family = std::to_string(i % 10),
             .classes = {megabytes < 1 ? "small" : "large"},
             .measured = noise * (true_start + megabytes * 1e3 / true_rate),
             .predict = [megabytes](const Machines& machines) { return copy_us(machines, megabytes); }});
    }
    return problem;
}

Machines machines(const DeviceValues& values) {
    const Machine shipped_one = shipped_machine("mi300x_1");
    const Json trial = trial_calibration("mi300x", values);
    Json device = read_json_file(source_folder / "configs/devices/mi300x.json");
    for (const auto& [name, value] : values) device.at("dma").erase(name.substr(4));
    const TemporaryFolder folder;
    std::ofstream(folder / "mi300x.json") << device.dump();
    const Json topology = read_json_file(source_folder / "configs/topologies/mi300x_1.json");
    Machines result;
    result.emplace(2, machine_of(Topology({topology, "topology"},
                                          read_device(folder / "mi300x.json", {trial, "trial"}))));
    return result;
}

}  // namespace

TEST_CASE("the fit of a device's keys finds them among noise and outliers") {
    const DeviceCalibration calibration = calibrate(problem(), machines);
    REQUIRE(calibration.fitted.size() == 3);
    CHECK(calibration.fitted[0].value == Approx(true_start).epsilon(0.02));
    CHECK(calibration.fitted[1].value == Approx(true_rate).epsilon(0.02));
    CHECK(calibration.fitted[0].standard_error > 0);
    CHECK(calibration.fitted[0].standard_error < 0.1 * true_start);
    // No row depends on the completion: it stays where it was believed to be, and is reported.
    CHECK(calibration.fitted[2].value == Approx(7));
    CHECK(calibration.undetermined() == std::vector<std::string>{"dma/completion_us"});
}

TEST_CASE("classes and families of a fit") {
    const DeviceCalibration calibration = calibrate(problem(), machines);
    const auto classes = calibration.classes();
    REQUIRE(classes.size() == 3);
    CHECK(classes[0].count == 63);
    CHECK(classes[1].count == 27);
    CHECK(classes[2].count == 0);
    // One row in nine is off by half; the others by 1 %.
    CHECK(classes[0].held_out.mean == Approx(0.5 / 9 + 0.01).margin(0.01));
    CHECK(calibration.predicted != calibration.predicted_held_out);
    const std::string table = error_table(classes);
    CHECK_THAT(table, Contains("small") && Contains("large") && !Contains("none"));
}

TEST_CASE("fitted keys are written as the calibration file has them") {
    Json groups = Json::object();
    add_to_groups(calibrate(problem(), machines), groups);
    const Json& start = groups.at("dma").at("start_us");
    CHECK(start.at("unit") == "us");
    CHECK(start.at("file") == "made up");
    CHECK(start.at("date") == "2026-11-21");
    CHECK(start.at("source") == "fitted to made up");
    CHECK(start.at("standard_error").get<double>() > 0);
    CHECK(groups.at("dma").at("completion_us").at("source") ==
          "prior (another guess): the measurements do not determine it");
    const Json& provenance = groups.at("dma").at("provenance").at("copies");
    CHECK(provenance.at("rows_fitted") == 90);
    CHECK(provenance.at("families") == 10);
    CHECK(provenance.at("classes").size() == 2);
    CHECK(provenance.at("not_determined") == Json{"dma/completion_us"});
}

}  // namespace overlap::test::fit_device_test
