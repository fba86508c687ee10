#include <catch2/catch.hpp>
#include <map>

#include "sim/report/run/report.hpp"

using namespace overlap;

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
    run.timeline = Timeline(std::move(spans));
    const auto counter = [](ResourceKind kind, int gpu, const std::string& name) {
        return Counter{kind, gpu, name, 4e12, {{Seconds(), 2e12}, {microseconds(80), 0}}};
    };
    run.counters = {counter(ResourceKind::hbm, 0, "hbm[0]"), counter(ResourceKind::hbm, 1, "hbm[1]"),
                    counter(ResourceKind::link, -1, "link[gpu1->gpu0]"),
                    counter(ResourceKind::link, -1, "link[switch->gpu0]")};
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
    CHECK(spans == two_gpus().timeline.spans().size());
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
    run.timeline = Timeline({span("c", 8, 20), span("b", 2, 4), span("a", 0, 10)});
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
