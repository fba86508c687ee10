#include "sim/compare/measured_case.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/test_support.hpp"

namespace overlap::test::measured_case_test {
namespace {

Json good() {
    return parse_json(R"({"schema": 1, "system": "h200_4",
        "scenario": {"topology": "h200_4.json", "schedule": "serial", "workload": "llama3_70b_down_forward"},
        "runs": [{"date": "2026-11-20", "samples_us": [10, 12, 11]}, {"samples_us": [14, 14]}],
        "spans": [{"name": "gemm", "kind": "gemm", "gpu": 1, "stream": "compute", "start_us": 1, "end_us": 9}]})",
                      "good");
}

class Files {
public:
    std::string write(const std::string& name, const std::string& text) const {
        const auto path = folder_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return path.string();
    }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

private:
    TemporaryFolder folder_;
};

std::vector<MeasuredCase> read(const std::string& path) {
    return read_measured_cases(std::vector<std::string>{path});
}

}  // namespace

TEST_CASE("a measured case: median of all samples, spread between runs, spans") {
    const Files files;
    const MeasuredCase one = read(files.write("case.json", good().dump())).front();
    CHECK(one.system == "h200_4");
    CHECK(one.config.schedule == "serial");
    CHECK(to_microseconds(one.makespan()) == Approx(12));  // of 10 11 12 14 14
    CHECK(one.spread() == Approx(14.0 / 12 - 1));          // medians 11 and 14
    CHECK(one.runs.size() == 2);
    REQUIRE(one.timeline);
    CHECK(one.timeline->spans().front().kind == TaskKind::gemm);
    CHECK(to_microseconds(one.timeline->end()) == Approx(9));
}

TEST_CASE("measured cases come from files, lines, folders and patterns") {
    const Files files;
    const std::string line = good().dump();
    files.write("a/one.json", line);
    Json other = good();
    other["scenario"]["schedule"] = "shard_p2p";
    files.write("a/b/two.jsonl", line + "\n\n" + other.dump() + "\n");
    files.write("a/README.md", "not a case");
    CHECK(read(files.path("a/one.json")).size() == 1);
    CHECK(read(files.path("a/b/two.jsonl")).size() == 2);
    CHECK(read(files.path("a")).size() == 2);
    CHECK(read(files.path("a/*.json")).size() == 1);
    CHECK(read(files.path("a/b/two.jsonl"))[1].origin.ends_with("two.jsonl:3"));
    CHECK(error_of([&] { read(files.path("a/x*.json")); }).find("no such file") != std::string::npos);
    std::filesystem::create_directories(files.path("empty"));
    CHECK(error_of([&] { read(files.path("empty")); }).find("has no .json") != std::string::npos);
}

TEST_CASE("runs of one scenario in several files are one case; replay's other lines are none") {
    const Files files;
    const std::string machine = R"({"schema": 1, "kind": "machine", "device": "GPU"})";
    const std::string skipped = R"({"schema": 1, "kind": "overlap", "skipped": "no memory"})";
    Json run = good();
    run["kind"] = "overlap";
    run["unit"] = "us";
    run["plan"] = 1;
    files.write("a/1.jsonl", machine + "\n" + run.dump() + "\n" + skipped + "\n");
    run["runs"] = Json::array({{{"samples_us", {20}}}});
    files.write("a/2.jsonl", machine + "\n" + run.dump() + "\n");
    const std::vector<MeasuredCase> cases = read(files.path("a"));
    REQUIRE(cases.size() == 1);
    CHECK(cases[0].runs.size() == 3);
    CHECK(to_microseconds(cases[0].makespan()) == Approx(13));  // of 10 11 12 14 14 20
    run["tolerance"] = {{"error_pct", 5}, {"status", "enforced"}};
    files.write("a/3.jsonl", run.dump() + "\n");
    CHECK(error_of([&] { read(files.path("a")); }).find("is measured in") != std::string::npos);
}

TEST_CASE("a bad measured case is one line with file and pointer") {
    const Files files;
    const auto error = [&](auto change) {
        Json json = good();
        change(json);
        return error_of([&] { read(files.write("case.json", json.dump())); });
    };
    const auto has = [](const std::string& text, const std::string& part) {
        INFO(text);
        return text.find(part) != std::string::npos && text.find('\n') == std::string::npos;
    };
    CHECK(has(error([](Json& j) { j["runs"][0]["samples_us"][1] = -1; }), "/runs/0/samples_us/1"));
    CHECK(has(error([](Json& j) { j["runs"][0]["samples_us"] = Json::array(); }), "/runs/0/samples_us"));
    CHECK(has(error([](Json& j) { j["runs"] = Json::array(); }), "/runs"));
    CHECK(has(error([](Json& j) { j.erase("runs"); }), "makespan_us"));
    CHECK(has(error([](Json& j) { j["makespan_us"] = 99; }), "/makespan_us"));
    CHECK(has(error([](Json& j) { j["scenario"] = 3; }), "/scenario"));
    CHECK(has(error([](Json& j) { j["scenario"]["shedule"] = "x"; }), "shedule"));
    CHECK(has(error([](Json& j) { j["spans"][0]["end_us"] = 0; }), "/spans/0/end_us"));
    CHECK(has(error([](Json& j) { j["spans"][0]["kind"] = "gem"; }), "'gemm'"));
    CHECK(has(error([](Json& j) { j["sistem"] = "x"; }), "sistem"));
    CHECK(has(error([](Json& j) {
                  j["tolerance"] = {{"error_pct", 5}, {"status", "known_gap"}};
              }),
              "/tolerance"));
    CHECK(
        has(error_of([&] { read(files.write("cut.jsonl", good().dump().substr(0, 100))); }), "cut.jsonl:1"));
}

}  // namespace overlap::test::measured_case_test
