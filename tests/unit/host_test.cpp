#include "sim/schedules/host.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <optional>

#include "models/gemm_model.hpp"
#include "sim/run/run.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::host_test {

using Catch::Contains;

namespace {

const Work gemm = GemmShape{128, 128, 128};

/// Two GPUs with two GEMMs each, in the order in which one thread enqueues them: all of GPU 0, then all of GPU 1.
TaskGraph two_by_two() {
    TaskGraph graph;
    for (const int gpu : {0, 1})
        for (int i = 0; i < 2; ++i) graph.add({.work = gemm, .gpu = gpu, .chunk = i});
    return graph;
}

Host of_calls(double gemm_us, int depth = 0) {
    Host host;
    host.calls.gemm = microseconds(gemm_us);
    host.queue_depth = depth;
    return host;
}

RunResult run_of(const Json& more, const std::string& schedule = "async_tp") {
    Json json{{"topology", "h200_2"},
              {"schedule", schedule},
              {"workload",
               parse_json(
                   R"({"collective": "all_gather", "gemm": {"m": 512, "n": 512, "k": 512, "dtype": "bf16"}})",
                   "")}};
    json.update(more);
    return run(resolved(read_run_config(json, "x.json")), {.record = false});
}

}  // namespace

TEST_CASE("hosts side by side enqueue in turn, and calls that take no time are no tasks") {
    const TaskGraph graph = enqueued(two_by_two(), Host(), Seconds());
    REQUIRE(graph.size() == 4);
    for (const auto& [id, gpu, chunk] : {std::tuple(0, 0, 0), {1, 1, 0}, {2, 0, 1}, {3, 1, 1}}) {
        CHECK(graph[static_cast<TaskId>(id)].gpu == gpu);
        CHECK(graph[static_cast<TaskId>(id)].chunk == chunk);
    }
}

TEST_CASE("a process a GPU enqueues by default, where that matters") {
    const auto scenario = [](const char* topology, const char* schedule) {
        return resolved(read_run_config({{"topology", topology}, {"schedule", schedule}}, "x.json"));
    };
    REQUIRE(scenario("h200_8", "async_tp").host != nullptr);
    CHECK(scenario("h200_8", "async_tp").host->name == "threads");
    REQUIRE(scenario("h200_8", "two_streams").host != nullptr);
    CHECK(scenario("h200_8", "two_streams").host->name == "threads");
    CHECK(scenario("h200_2", "two_streams").host == nullptr);  // one pulls from each
    CHECK(scenario("mi300x_8", "async_tp").host == nullptr);   // receivers' engines serve their own pulls
}

TEST_CASE("ranks that begin apart wait at the collective, but not in a loop") {
    const TemporaryFolder folder;
    const std::string file = folder / "late_ranks.json";
    std::ofstream(file) << R"({"schema": 1, "name": "late_ranks", "description": "x.",
        "start_skew_us": {"value": 80, "source": "test"}})";
    const auto library = [&](const char* host, const char* repeat) {
        const Json params{{"agent", "cu"}, {"algorithm", "library"}};
        return run_of({{"host", host}, {"repeat", repeat}, {"params", params}}, "serial");
    };
    // NCCL's kernel begins when the last of the ranks comes: GPU 1, 80 us late.
    const RunResult together = library("threads", "once"), late = library(file.c_str(), "once");
    CHECK(to_microseconds(late.makespan - together.makespan) == Approx(80).margin(0.5));
    CHECK(to_microseconds(late.losses.host - together.losses.host) == Approx(80).margin(0.5));
    CHECK(library(file.c_str(), "steady").makespan == library("threads", "steady").makespan);
}

TEST_CASE("a task waits for its call, and the calls of a GPU follow each other") {
    const TaskGraph graph = enqueued(two_by_two(), of_calls(5), microseconds(100));
    REQUIRE(graph.size() == 8);
    // GPU 0's first call takes 100 us before it, then 5; a GEMM follows.
    CHECK(std::get<HostWork>(graph[0].work).time == microseconds(105));
    CHECK(predecessors(graph, 1) == std::vector<TaskId>{0});
    CHECK(host_time(graph) == microseconds(110));
    // Without other work: 105 + 5, then the second GEMM of 20 us.
    std::vector<Seconds> times;
    for (TaskId id = 0; id < graph.size(); ++id)
        times.push_back(graph[id].kind() == TaskKind::host ? std::get<HostWork>(graph[id].work).time
                                                           : microseconds(20));
    CHECK(to_microseconds(graph.critical_path(times)) == Approx(105 + 20 + 20));  // the second call is hidden
}

TEST_CASE("a host waits for a place in the queue") {
    TaskGraph chain;
    for (int i = 0; i < 4; ++i) chain.add({.work = gemm, .chunk = i});
    const TaskGraph graph = enqueued(chain, of_calls(5, 2), Seconds());
    // Tasks 0, 2, 4, 6 are calls; the third waits for the first GEMM, task 1, the fourth for task 3.
    CHECK(predecessors(graph, 4) == std::vector<TaskId>{1});
    CHECK(predecessors(graph, 6) == std::vector<TaskId>{3});
    CHECK(predecessors(graph, 2).empty());
}

TEST_CASE("a captured graph has one call a GPU") {
    Host host = of_calls(5);
    host.calls.graph = microseconds(4);
    const TaskGraph graph = enqueued(two_by_two(), host, Seconds());
    CHECK(graph.size() == 6);
    CHECK(host_time(graph) == microseconds(4));
}

TEST_CASE("between two replays of a captured graph is a gap, longer with a library's collective in it") {
    Host host = of_calls(5);
    host.starts.replay = microseconds(1);
    host.starts.replay_collective = microseconds(2);
    TaskGraph graph = two_by_two();
    CHECK(replay_gap(graph, host) == Seconds());  // calls one by one
    host.calls.graph = microseconds(4);
    CHECK(replay_gap(graph, host) == microseconds(1));
    CollectiveKernelWork summed{
        .kind = CollectiveKind::all_reduce, .operand = Bytes(8), .kernel = CollectiveKernel::one_shot};
    graph.add({.work = summed});
    CHECK(replay_gap(graph, host) == microseconds(1));
    summed.kernel = CollectiveKernel::library;
    graph.add({.work = summed});
    CHECK(to_microseconds(replay_gap(graph, host)) == Approx(3));
}

TEST_CASE("a steady graph takes its gap in addition, and a run from cool GPUs waits for its launch") {
    // One GEMM that lasts longer than a launch; 1.4 and 5.3 us are those of configs/hosts/cuda_graph.json.
    const Json gemm_only = parse_json(
        R"({"operators": [{"name": "g", "type": "gemm", "m": 1024, "n": 1024, "k": 4096, "dtype": "bf16"}]})",
        "");
    const auto host_us = [&](const std::string& repeat) {
        const Json more{{"host", "cuda_graph"}, {"repeat", repeat}, {"workload", gemm_only}};
        return to_microseconds(run_of(more, "serial").losses.host);
    };
    CHECK(host_us("steady") == Approx(1.4));
    CHECK(host_us("once") == Approx(5.3));
}

TEST_CASE("eager operators that are shorter than their calls take as long as these") {
    const RunResult enqueued = run_of(Json::object()), eager = run_of({{"host", "pytorch_eager"}});
    CHECK(eager.makespan > 2 * enqueued.makespan);
    CHECK(eager.losses.host > Seconds());
    CHECK(enqueued.losses.host == Seconds());
    // Two GEMMs, three copies, three barriers, events, waits and turns, and the operator itself: the median of 15 hosts.
    const RunResult steady = run_of({{"host", "pytorch_eager"}, {"repeat", "steady"}});
    CHECK(to_microseconds(steady.makespan) ==
          Approx(2 * 15.9 + 3 * 7.7 + 3 * 8.7 + 2 * 1.5 + 2 * 1.4 + 2 * 15.4 + 219).epsilon(1e-3));
    CHECK(run_of({{"host", "cuda_graph"}, {"repeat", "steady"}}).makespan < steady.makespan);
}

TEST_CASE("one thread lets the other streams of a GPU begin 3 us after the first") {
    // Rank 0's GEMM of its own shard is first on its GPU; its copies are on other streams and wait for nothing.
    const auto spans = [](const Json& more) {
        Json json{
            {"topology", "h200_2"},
            {"schedule", "ring_chunked"},
            {"params", {{"agent", "dma"}, {"transfer", "push"}, {"chunks", 2}}},
            {"workload",
             parse_json(
                 R"({"collective": "all_gather", "gemm": {"m": 4096, "n": 4096, "k": 4096, "dtype": "bf16"}})",
                 "")}};
        json.update(more);
        const RunResult result = run(resolved(read_run_config(json, "x.json")));
        std::optional<Seconds> gemm, copy;  // when the bodies of GPU 0's first tasks begin
        for (TaskId id = 0; id < result.observed.recording->graph.size(); ++id) {
            const Task& task = result.observed.recording->graph[id];
            if (task.gpu != 0) continue;
            auto& first = task.kind() == TaskKind::gemm ? gemm : copy;
            if (!first) first = result.observed.recording->bodies[id].first;
        }
        return std::pair(to_microseconds(*gemm), to_microseconds(*copy));
    };
    const auto together = spans(Json::object()), released = spans({{"host", "one_thread"}});
    CHECK(released.first == Approx(together.first));
    CHECK(released.second == Approx(together.second + 3));  // configs/hosts/one_thread.json
}

TEST_CASE("a host's value that no device has is refused, with the nearest one") {
    const Json host{{"schema", 1},
                    {"name", "x"},
                    {"description", "x"},
                    {"device", {{"launch.kernl_us", {{"value", 1}, {"source", "x"}}}}}};
    CHECK_THROWS_WITH(read_host({host, "x.json"}),
                      Contains("x.json: /device/launch.kernl_us: is no value of a device") &&
                          Contains("'launch.kernel_us'"));
}

TEST_CASE("hosts side by side let four GPUs that pull from each other come close to the ideal") {
    const auto pulls = [](const Json& more) {
        Json json{
            {"topology", "h200_4"},
            {"schedule", "serial"},
            {"params", {{"agent", "dma"}, {"transfer", "pull"}}},
            {"workload",
             parse_json(
                 R"({"collective": "all_gather", "gemm": {"m": 65536, "n": 128, "k": 8192, "dtype": "bf16"}})",
                 "")}};
        json.update(more);
        return run(resolved(read_run_config(json, "x.json")), {.record = false}).phases.comm;
    };
    // One thread enqueues GPU by GPU: every sender serves receivers in the same order, and twice the ideal passes
    // (traces/h200_4/microbench/four_gpus.jsonl). A thread a GPU takes the peers in rotation.
    CHECK(pulls({{"host", "replay"}}) / pulls(Json::object()) == Approx(2).epsilon(0.1));
}

TEST_CASE("GEMMs take less in a graph, and longer on real data than on even operands") {
    const auto gemm_of = [](const Json& host) {
        const TemporaryFolder folder;
        Json file{{"schema", 1}, {"name", "m"}, {"description", "d"}};
        for (const auto& [key, value] : host.items())
            file[key] = {{"value", value}, {"source", "estimate: test"}};
        std::ofstream(folder / "mine.json") << file;
        const Json config{{"topology", "h200_2"},
                          {"schedule", "serial"},
                          {"host", (folder / "mine.json").string()},
                          {"workload",
                           {{"collective", "all_gather"},
                            {"gemm", {{"m", 8200}, {"n", 8200}, {"k", 8200}, {"dtype", "bf16"}}}}}};
        return resolved(read_run_config(config, "x.json")).machine;
    };
    const auto estimate = [](const Machine& machine) {
        return estimate_gemm({8200, 8200, 8200}, machine.calibration.gemm_for(DType::bf16));
    };
    const auto plain = gemm_of(Json::object()), saved = gemm_of({{"gemm_saved_us", 1}}),
               slow = gemm_of({{"gemm_speed", 0.5}});
    // H200's GEMMs begin 3.13 us after a launch; 1 us is saved, and the 1.5 us of launch.kernel_us come in addition.
    CHECK(to_microseconds(estimate(*plain).launch - estimate(*saved).launch) == Approx(1 + 1.5));
    CHECK(estimate(*saved).body == estimate(*plain).body);
    // Nearly all of this GEMM's time is arithmetic.
    CHECK(estimate(*slow).body / estimate(*plain).body == Approx(2).epsilon(0.03));
    CHECK(slow->calibration.measured_gemm.contains(DType::bf16));  // so that measured times follow
}

TEST_CASE("mistakes in a host's file are one line") {
    CHECK_THAT(error_of([] { run_of({{"host", "pytorch"}}); }), Contains("pytorch"));
    const TemporaryFolder folder;
    const auto refused = [&](const std::string& text) {
        std::ofstream(folder / "mine.json") << text;
        return error_of([&] { run_of({{"host", (folder / "mine.json").string()}}); });
    };
    CHECK_THAT(
        refused(
            R"({"schema": 1, "name": "m", "description": "d", "gem_us": {"value": 1, "source": "estimate: x"}})"),
        Contains("/gem_us"));
    CHECK_THAT(
        refused(
            R"({"schema": 1, "name": "m", "description": "d", "gemm_us": {"value": -1, "source": "estimate: x"}})"),
        Contains("/gemm_us/value"));
}

}  // namespace overlap::test::host_test
