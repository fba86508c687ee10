#include <catch2/catch.hpp>
#include <map>

#include "sim/report/run/report.hpp"

namespace overlap::test::chrome_trace_test {
namespace {

// Two GPUs with spans out of order and a name that JSON must escape; counters of 2 TB/s until 80 µs.
RunResult two_gpus() {
    RunResult run;
    std::vector<Span> spans;
    for (int gpu = 0; gpu < 2; ++gpu) {
        spans.push_back({"copy 1>0", TaskKind::copy, gpu, "transfer 10", microseconds(10), microseconds(30)});
        spans.push_back({"copy 2>0", TaskKind::copy, gpu, "transfer 2", microseconds(10), microseconds(20)});
        spans.push_back({"gemm s1", TaskKind::gemm, gpu, "compute", microseconds(50), microseconds(80)});
        spans.push_back({"gemm \"s0\"\n\xff", TaskKind::gemm, gpu, "compute", Seconds(), microseconds(30)});
        spans.push_back({"pack", TaskKind::local_copy, gpu, "local", microseconds(30), microseconds(50)});
    }
    run.observed.timeline = Timeline(std::move(spans));
    const auto counter = [](int gpu, const std::string& name) {
        return Counter{gpu, name, {{Seconds(), 2e12}, {microseconds(80), 0}}};
    };
    run.observed.counters = {counter(0, "hbm[0]"), counter(1, "hbm[1]"), counter(-1, "link[gpu1->gpu0]"),
                             counter(-1, "link[switch->gpu0]")};
    return run;
}

}  // namespace

TEST_CASE("the Chrome trace has named, ordered tracks, whole events and counters") {
    const std::string text = to_chrome_trace(two_gpus());
    CHECK(text == to_chrome_trace(two_gpus()));
    const Json trace = Json::parse(text);
    std::map<std::pair<int, int>, std::string> tracks;
    std::map<std::pair<int, int>, double> last;
    std::map<int, std::string> processes;
    std::map<std::string, int> counters;  // to the process they are in
    std::size_t spans = 0;
    for (const Json& event : trace["traceEvents"]) {
        const int pid = event["pid"].get<int>();
        const std::pair track{pid, event.value("tid", 0)};
        if (event["name"] == "thread_name") tracks[track] = event["args"]["name"].get<std::string>();
        if (event["name"] == "process_name") processes[pid] = event["args"]["name"].get<std::string>();
        if (event["ph"] == "C") counters[event["name"].get<std::string>()] = pid;
        if (event["ph"] == "C")
            CHECK(event["args"]["GB/s"].get<double>() == Approx(event["ts"] == 0.0 ? 2000 : 0));
        if (event["ph"] != "X") continue;
        ++spans;
        CHECK(tracks.contains(track));
        CHECK(event["ts"].get<double>() >= last[track]);
        CHECK(event["dur"].get<double>() >= 0);
        if (event["name"] == "pack")
            CHECK(event["ts"].get<double>() + event["dur"].get<double>() == Approx(50));
        last[track] = event["ts"].get<double>();
    }
    CHECK(spans == two_gpus().observed.timeline.spans().size());
    CHECK(processes == std::map<int, std::string>{{0, "GPU 0"}, {1, "GPU 1"}, {2, "fabric"}});
    CHECK(counters == std::map<std::string, int>{
                          {"hbm[0]", 0}, {"hbm[1]", 1}, {"link[gpu1->gpu0]", 1}, {"link[switch->gpu0]", 2}});
    std::vector<std::string> first_gpu;
    for (const auto& [track, name] : tracks)
        if (track.first == 0) first_gpu.push_back(name);
    CHECK(first_gpu == std::vector<std::string>{"compute", "local", "transfer 2", "transfer 10"});
}

TEST_CASE("the Chrome trace shows a span only until one that outlasts it begins") {
    // a: 0 to 10 µs, b inside it, c from 8 to 20: a is shown to 8, b and c whole.
    const auto span = [](const std::string& name, double start, double end) {
        return Span{name, TaskKind::copy, 0, "transfer 1", microseconds(start), microseconds(end)};
    };
    RunResult run;
    run.observed.timeline = Timeline({span("c", 8, 20), span("b", 2, 4), span("a", 0, 10)});
    std::map<std::string, double> durations;
    const Json trace = Json::parse(to_chrome_trace(run));
    for (const Json& event : trace["traceEvents"]) {
        if (event["ph"] != "X") continue;
        durations[event["name"].get<std::string>()] = event["dur"].get<double>();
        CHECK(event.contains("args") == (event["name"] == "a"));
        if (event.contains("args")) CHECK(event["args"]["whole_dur_us"] == 10.0);
    }
    CHECK(durations == std::map<std::string, double>{{"a", 8}, {"b", 2}, {"c", 12}});
}

namespace {

/// GPU 0 copies 3 GB in 10 to 40 us and 40 to 70 us; GPU 1 multiplies after the first copy, and beyond its half after
/// half of the second.
RunResult recorded() {
    Recording recording;
    CopyWork copy{1, 0, gigabytes(3), gigabytes(3)};
    Task first{copy, 0, transfer_stream(1)}, second = first,
                                             gemm{GemmShape{1000, 2000, 500}, 1, compute_stream};
    first.shard = second.shard = 1;
    first.chunk = 0;
    second.chunk = 1;
    gemm.op = 1;
    for (const Task& task : {first, second, gemm}) recording.graph.add(task);
    recording.graph.add_edge({0, 2});
    recording.graph.add_edge({1, 2, 0.5, 0.5});
    recording.bodies = {{microseconds(10), microseconds(40)},
                        {microseconds(40), microseconds(70)},
                        {microseconds(45), microseconds(65)}};
    recording.critical = {0, 2};
    RunResult run;
    // The completion of the first copy, until 45, overlaps the second one.
    run.observed.timeline =
        Timeline({{"copy 0", TaskKind::copy, 0, "transfer 1", Seconds(), microseconds(45)},
                  {"copy 1", TaskKind::copy, 0, "transfer 1", microseconds(40), microseconds(75)},
                  {"gemm", TaskKind::gemm, 1, "compute", microseconds(45), microseconds(70)}});
    run.observed.recording = std::move(recording);
    run.config["workload"]["operators"] = {{{"name", "gather"}}, {{"name", "up"}}};
    return run;
}

}  // namespace

TEST_CASE("slices of the Chrome trace tell what a task did, and which tasks are critical") {
    const Json trace = Json::parse(to_chrome_trace(recorded()));
    std::map<std::string, Json> args;
    std::vector<std::string> path;
    std::string path_process;
    for (const Json& event : trace["traceEvents"]) {
        if (event["ph"] == "M" && event["args"].value("name", "") == "critical path")
            path_process = event["pid"].dump();
        if (event["ph"] != "X") continue;
        if (event["pid"].dump() == path_process) path.push_back(event["name"].get<std::string>());
        args[event["name"].get<std::string>()] = event["args"];
    }
    // 3 GB in 30 us; 2 * 1000 * 2000 * 500 = 2 GFLOP in 20 us
    const Json copy{{"source", "GPU 1"},
                    {"destination", "GPU 0"},
                    {"agent", "dma pull"},
                    {"bytes", 3000000000},
                    {"GB/s", 1e5},
                    {"shard", 1},
                    {"step", 1}};
    CHECK(args.at("copy 1") == copy);
    CHECK(args.at("up") == Json{{"shape", "1000x2000x500 bf16"},
                                {"TFLOP/s", 100.0},
                                {"operator", "up"},
                                {"critical path", true}});
    CHECK(args.at("copy 0").at("critical path") == true);
    CHECK(path == std::vector<std::string>{"GPU 0: copy 0", "GPU 1: up"});
}

TEST_CASE("arrows of the Chrome trace begin and end inside the slices of an edge, in this order") {
    const Json trace = Json::parse(to_chrome_trace(recorded()));
    std::vector<const Json*> slices;
    for (const Json& event : trace["traceEvents"])
        if (event["ph"] == "X") slices.push_back(&event);
    // The slice that a viewer binds the end of an arrow to: open at this time, on the same track.
    const auto bound = [&](const Json& end) {
        std::string name;
        for (const Json* slice : slices)
            if ((*slice)["pid"] == end["pid"] && (*slice)["tid"] == end["tid"] &&
                (*slice)["ts"] <= end["ts"] &&
                end["ts"] < (*slice)["ts"].get<double>() + (*slice)["dur"].get<double>())
                name = (*slice)["name"].get<std::string>();
        return name;
    };
    struct Arrow {
        std::string from, to;
        double begin = -1, end = -1;
    };
    std::map<int, Arrow> arrows;
    for (const Json& event : trace["traceEvents"]) {
        if (event["ph"] != "s" && event["ph"] != "f") continue;
        const bool begins = event["ph"] == "s";
        CHECK(begins != event.contains("bp"));
        if (!begins) CHECK(event["bp"] == "e");
        Arrow& arrow = arrows[event["id"].get<int>()];
        (begins ? arrow.from : arrow.to) = bound(event);
        (begins ? arrow.begin : arrow.end) = event["ts"].get<double>();
    }
    REQUIRE(arrows.size() == 2);
    CHECK(arrows.at(1).from == "copy 0");
    CHECK(arrows.at(1).to == "up");
    CHECK(arrows.at(1).begin == Approx(39.999));  // the slice is cut at 40
    CHECK(arrows.at(1).end == 45.0);
    CHECK(arrows.at(2).from == "copy 1");
    CHECK(arrows.at(2).to == "up");
    CHECK(arrows.at(2).begin == 55.0);  // half of 40 to 70
    CHECK(arrows.at(2).end == 55.0);    // half of 45 to 65
}

}  // namespace overlap::test::chrome_trace_test
