// Can files of every version that was ever written still be read? tests/samples/<kind>.<version>.json are frozen.
#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "models/gemm_libraries.hpp"
#include "sim/compare/compare_cases.hpp"
#include "sim/core/file_version.hpp"
#include "sim/plan/plan.hpp"
#include "sim/reproduce/published_experiment.hpp"
#include "sim/run/run_config.hpp"
#include "sim/schedules/schedule.hpp"
#include "tests/schema.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::samples_test {

using Catch::Contains;

namespace {

/// Reads a file as its command does.
void read(const std::string& kind, const std::filesystem::path& path) {
    const std::filesystem::path configs = source_folder / "configs";
    const std::vector<std::string> cases{source_folder / "tests/samples/measured_case.1.json"};
    if (kind == "device") read_device(path);
    if (kind == "calibration") read_gemm_calibration(path);
    if (kind == "topology")
        read_machine_files(read_config_file(path, kind), configs / "devices", configs / "calibrations");
    if (kind == "workload") read_workload(read_config_file(path, kind).view());
    if (kind == "run") read_run_config(read_json_file(path), path.string());
    if (kind == "schedule") read_preset(read_config_file(path, kind));
    if (kind == "host") read_host(read_config_file(path, kind));
    if (kind == "sweep") DesignSpace(path, shipped);
    if (kind == "experiment") read_experiment(path, shipped);
    if (kind == "measured_case") read_measured_cases(std::vector{path.string()});
    if (kind == "plan") read_plan_file(path);
    if (kind == "tolerances") judge(compare(read_measured_cases(cases), shipped), path);
}

}  // namespace

TEST_CASE("files of every kind and version are read, and those of a newer version are refused") {
    const TemporaryFolder folder;
    std::set<std::string> kinds;
    for (const auto& entry : std::filesystem::directory_iterator(source_folder / "tests/samples")) {
        INFO(entry.path().string());
        const std::string kind = entry.path().stem().stem().string();
        const Json given = read_json_file(entry.path());
        CHECK(given.at("schema").dump() == entry.path().stem().extension().string().substr(1));
        const Json newest = upgraded(given, kind, "sample");
        CHECK(Schema(kind).errors(nlohmann::json::parse(newest.dump()), "sample") == "");
        CHECK(error_of([&] { read(kind, entry.path()); }) == "");

        Json newer = given;
        newer["schema"] = 99;
        std::ofstream(folder / "newer.json") << newer.dump();
        CHECK_THAT(
            error_of([&] { read(kind, folder / "newer.json"); }),
            Contains("newer.json: /schema: is 99, newer than this program, expected at most version "));
        kinds.insert(kind);
    }
    CHECK(kinds == std::set<std::string>{"calibration", "device", "experiment", "host", "measured_case",
                                         "plan", "run", "schedule", "sweep", "tolerances", "topology",
                                         "workload"});
}

TEST_CASE("claims of version 1 say limit where those of version 2 say asked") {
    const auto sample = [](const std::string& version) {
        return upgraded(read_json_file(source_folder / "tests/samples" / ("tolerances." + version + ".json")),
                        "tolerances", "sample");
    };
    CHECK(sample("1")["claims"] == Json::parse(R"([{"where": {"agent": "dma"}, "metric": "mean_abs_pct",
                                                    "status": "enforced", "asked": 5}])"));
    CHECK(sample("1").at("schema") == sample("2").at("schema"));
}

TEST_CASE("devices and calibrations of version 2 lack three keys of version 1") {
    const Json old = Json::parse(R"({"schema": 1, "dma": {"poll_us": 9, "poll_apart_us": 3, "event_us": 2,
                                                          "pull_step_us": 13}})");
    const Json odd = Json::parse(R"({"schema": 1, "dma": ["event_us"]})");
    for (const std::string kind : {"device", "calibration"}) {
        CHECK(upgraded(old, kind, "sample") == Json::parse(R"({"schema": 2, "dma": {"poll_us": 9}})"));
        CHECK(upgraded(odd, kind, "sample").at("dma").is_array());
    }
}

}  // namespace overlap::test::samples_test
