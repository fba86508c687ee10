// PyTorch's trace is a recorded one; the other samples follow the documented
// formats (named in each importer).
#include <sqlite3.h>
#include <catch2/catch.hpp>
#include <fstream>

#include "sim/importers/trace_importer.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::importers_test {
namespace {

class Samples {
public:
    std::filesystem::path write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name) << text;
        return folder_ / name;
    }
    std::filesystem::path database(const std::string& name, const std::string& statements) const {
        sqlite3* handle = nullptr;
        REQUIRE(sqlite3_open((folder_ / name).c_str(), &handle) == SQLITE_OK);
        REQUIRE(sqlite3_exec(handle, statements.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
        sqlite3_close(handle);
        return folder_ / name;
    }

private:
    TemporaryFolder folder_;
};

const KernelTable& shipped_kernels() {
    static const KernelTable kernels = [] {
        KernelTable table;
        table.add(source_folder / "configs" / "kernels.json");
        return table;
    }();
    return kernels;
}

RecordedTrace read(const std::filesystem::path& path) {
    return find_trace_importer(path, "").read(path, shipped_kernels());
}

Timeline timeline(std::vector<RecordedTrace> traces) {
    return timeline_of(merged(traces));
}

const std::string kineto = R"json({"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000,
 "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 4}, "traceEvents": [
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 1.0, "dur": 50.0, "args": {}},
 {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
  "pid": 1, "tid": 20, "ts": 10.5, "dur": 100.25, "args": {"device": 1, "stream": 20, "correlation": 1}},
 {"ph": "X", "cat": "kernel", "name": "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", "pid": 1, "tid": 7,
  "ts": 110.75, "dur": 30.0, "args": {"device": 1, "stream": 7, "correlation": 2}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)", "pid": 1, "tid": 8, "ts": 12.5,
  "dur": 8.0, "args": {"device": 1, "stream": 8, "bytes": 4096}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 1, "tid": 8, "ts": 11.0,
  "dur": 1.0, "args": {"device": 1, "stream": 8}},
 {"ph": "X", "cat": "kernel", "name": "my_own_kernel", "pid": 1, "tid": 7, "ts": 200.0, "dur": 1.0,
  "args": {"device": 1, "stream": 7}},
 {"ph": "i", "cat": "overhead", "name": "flush", "ts": 1.0}]})json";

}  // namespace

TEST_CASE("PyTorch profiler: kernels and copies of the GPU of a rank, the rest named") {
    const Samples samples;
    const RecordedTrace trace = read(samples.write("rank1.json", kineto));
    REQUIRE(trace.spans.size() == 5);
    const Timeline seen = timeline({trace});
    CHECK(seen.spans()[0].kind == TaskKind::collective);
    CHECK(seen.spans()[0].gpu == 1);
    CHECK(seen.spans()[0].track == "stream 20");
    CHECK(to_microseconds(seen.spans()[0].start) == Approx(0).margin(1e-9));
    CHECK(to_microseconds(seen.spans()[0].end) == Approx(100.25));
    CHECK(seen.spans()[1].kind == TaskKind::gemm);
    CHECK(to_microseconds(seen.spans()[1].start) == Approx(100.25));
    CHECK(seen.spans()[2].kind == TaskKind::copy);
    CHECK(trace.spans[3].with_host);
    CHECK(trace.spans[3].end_ns - trace.spans[3].start_ns == 1000);
    // A kernel that is not in the table keeps its time.
    CHECK(trace.not_mapped.at("my_own_kernel").count == 1);
    CHECK(seen.spans()[4].kind == TaskKind::memory_bound);
    CHECK(seen.spans()[4].name == "my_own_kernel");
    CHECK_FALSE(trace.spans[4].known);
    CHECK(trace.ranks == 4);
}

TEST_CASE("PyTorch profiler: a copy between GPUs is of the GPU whose engine does it") {
    const Samples samples;
    const auto file = [](int in_device, int to) {
        return R"json({"traceEvents": [{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)",
                       "ts": 4, "dur": 2, "args": {"stream": 14, "fromDevice": 0, "inDevice": )json" +
               std::to_string(in_device) + R"json(, "toDevice": )json" + std::to_string(to) + "}}]}";
    };
    const RecordedTrace pulled = read(samples.write("pull.json", file(1, 1)));
    REQUIRE(pulled.spans.size() == 1);
    CHECK(pulled.spans[0].gpu == 1);
    CHECK(pulled.spans[0].kind == TaskKind::copy);
    CHECK(pulled.spans[0].track == "stream 14");
    CHECK(read(samples.write("push.json", file(0, 1))).spans[0].gpu == 0);
    CHECK(read(samples.write("local.json", file(0, 0))).spans[0].kind == TaskKind::local_copy);
}

TEST_CASE("recorded PyTorch traces of symmetric memory: copies between GPUs, steps by their launches") {
    for (int rank = 0; rank < 2; ++rank) {
        const RecordedTrace trace = read(source_folder / "traces" / "h200_2" / "profiler_symm_mem" /
                                         ("rank" + std::to_string(rank) + ".json"));
        CHECK(trace.own_clock);
        CHECK(trace.not_mapped.empty());
        CHECK(trace.device == "NVIDIA H200");
        std::map<std::pair<std::int64_t, TaskKind>, int> seen;
        for (const RecordedSpan& span : trace.spans) {
            CHECK(span.gpu == rank);
            if (!span.launch.step) continue;
            ++seen[{*span.launch.step, span.kind}];
            if (span.kind == TaskKind::copy)  // 67.1 MB in 184 us: 365 GB/s
                CHECK(static_cast<double>(span.end_ns - span.start_ns) == Approx(182e3).epsilon(0.02));
        }
        REQUIRE(seen.size() == 4 * 4);
        for (std::int64_t step = 2; step <= 5; ++step) {
            CHECK(seen.at({step, TaskKind::gemm}) == 2);
            CHECK(seen.at({step, TaskKind::copy}) == 1);
            CHECK(seen.at({step, TaskKind::local_copy}) == 2);
            CHECK(seen.at({step, TaskKind::memory_bound}) == 3);  // barriers
        }
    }
}

TEST_CASE("recorded PyTorch traces of two and four ranks: three times all-gather, then GEMM") {
    // The last all-gather in us, and how far ranks are from it. GEMM: 344 GFLOP at some 800
    // TFLOP/s, as cuBLASLt takes alone (traces/h200_4/microbench: 426 us).
    const auto [machine, gpus, gathered, spread] = GENERATE(
        table<std::string, int, double, double>({{"h200_2", 2, 286, 0.01}, {"h200_4", 4, 343, 0.02}}));
    INFO(machine);
    const auto folder = source_folder / "traces" / machine / "profiler";
    std::vector<RecordedTrace> ranks;
    for (int rank = 0; rank < gpus; ++rank) {
        ranks.push_back(read(folder / ("rank" + std::to_string(rank) + ".json")));
        CHECK(ranks.back().not_mapped.empty());
    }
    const Timeline seen = timeline(ranks);
    CHECK(seen.gpus() == gpus);
    std::map<std::pair<int, TaskKind>, std::vector<double>> lasted;
    for (const Span& span : seen.spans())
        lasted[{span.gpu, span.kind}].push_back(to_microseconds(span.end - span.start));
    for (int gpu = 0; gpu < gpus; ++gpu) {
        REQUIRE(lasted[{gpu, TaskKind::gemm}].size() == 3);
        for (const double gemm : lasted[{gpu, TaskKind::gemm}]) CHECK(gemm == Approx(426).epsilon(0.02));
        REQUIRE(lasted[{gpu, TaskKind::collective}].size() == 3);
        CHECK(lasted[{gpu, TaskKind::collective}][2] == Approx(gathered).epsilon(spread));
        CHECK(lasted[{gpu, TaskKind::memory_bound}].size() == 3);  // cuBLASLt clears its workspace
    }
}

TEST_CASE("rocprofv3: kernels and copies of one run are two CSV files on one clock") {
    const Samples samples;
    const RecordedTrace kernels = read(
        samples.write("1_kernel_trace.csv",
                      "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Kernel_Name\",\"Start_Timestamp\","
                      "\"End_Timestamp\"\n"
                      "\"KERNEL_DISPATCH\",\"Agent 4\",1,2,\"Cijk_Ailk_Bljk_BBS_MT256x256x64\",1000,51000\n"
                      "\"KERNEL_DISPATCH\",\"Agent 5\",1,0,\"void foo<int, 3>(int, char)\",1000,2000\n"
                      "\"KERNEL_DISPATCH\",\"Agent 5\",1,0,\"rccl \"\"Generic\"\", a\",3000,9000\n"));
    const RecordedTrace copies = read(
        samples.write("1_memory_copy_trace.csv",
                      "\"Kind\",\"Direction\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\"Correlation_"
                      "Id\",\"Start_Timestamp\","
                      "\"End_Timestamp\"\n"
                      "\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_DEVICE\",\"Agent 5\",\"Agent 4\",7,2000,4000\n"
                      "\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",\"Agent 0\",\"Agent 4\",8,500,600\n"));
    const Timeline seen = timeline({kernels, copies});
    REQUIRE(seen.spans().size() == 5);
    CHECK(seen.gpus() == 2);
    CHECK(seen.spans()[0].kind == TaskKind::gemm);
    CHECK(seen.spans()[0].gpu == 0);
    CHECK(seen.spans()[0].track == "stream 2");
    CHECK(to_microseconds(seen.spans()[0].end - seen.spans()[0].start) == Approx(50));
    CHECK(seen.spans()[1].name == "void foo<int, 3>(int, char)");
    CHECK(seen.spans()[2].name == "rccl \"Generic\", a");
    CHECK(seen.spans()[2].gpu == 1);
    CHECK(seen.spans()[3].kind == TaskKind::copy);
    CHECK(to_microseconds(seen.spans()[3].start - seen.spans()[0].start) == Approx(1));
    CHECK(kernels.not_mapped.at("void foo<int, 3>(int, char)").count == 1);
    CHECK(copies.spans[1].with_host);
}

TEST_CASE("rocprofv3 JSON: agents, kernel names and records") {
    const Samples samples;
    const RecordedTrace trace = read(samples.write("results.json", R"({"rocprofiler-sdk-tool": [{
        "agents": [{"id": {"handle": 11}, "type": 1}, {"id": {"handle": 22}, "type": 2},
                   {"id": {"handle": 33}, "type": 2}],
        "kernel_symbols": [{"kernel_id": 5, "formatted_kernel_name": "Cijk_Alik"}, {"kernel_id": 6,
                            "formatted_kernel_name": "odd"}],
        "buffer_records": {
          "kernel_dispatch": [
            {"start_timestamp": 100, "end_timestamp": 2100,
             "dispatch_info": {"agent_id": {"handle": 33}, "queue_id": {"handle": 3}, "kernel_id": 5}},
            {"start_timestamp": 100, "end_timestamp": 200,
             "dispatch_info": {"agent_id": {"handle": 22}, "queue_id": {"handle": 3}, "kernel_id": 6}}],
          "memory_copy": [
            {"start_timestamp": 150, "end_timestamp": 250, "src_agent_id": {"handle": 22},
             "dst_agent_id": {"handle": 33}},
            {"start_timestamp": 150, "end_timestamp": 250, "src_agent_id": {"handle": 11},
             "dst_agent_id": {"handle": 33}}]}}]})"));
    const Timeline seen = timeline({trace});
    REQUIRE(seen.spans().size() == 4);
    CHECK(seen.spans()[0].gpu == 1);
    CHECK(to_microseconds(seen.spans()[0].end) == Approx(2));
    CHECK(seen.spans()[1].name == "odd");
    CHECK(seen.spans()[2].kind == TaskKind::copy);
    CHECK(seen.spans()[2].track == "copy from agent 22");
    CHECK(trace.spans[3].with_host);
    REQUIRE(trace.not_mapped.size() == 1);
    CHECK(trace.not_mapped.at("odd").count == 1);
}

TEST_CASE("Nsight Systems: the tables of CUDA activity") {
    const Samples samples;
    const RecordedTrace trace = read(samples.database("report.sqlite", R"(
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
                                                 demangledName INTEGER, shortName INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
                                                 bytes INTEGER, copyKind INTEGER);
        INSERT INTO StringIds VALUES (1, 'sm90_xmma_gemm_bf16bf16'), (2, 'mystery');
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5000, 9000, 2, 7, 1, 1), (9000, 9100, 2, 7, 2, 2);
        INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (4000, 6000, 3, 13, 64, 10), (1, 2, 3, 13, 64, 1);)"));
    const Timeline seen = timeline({trace});
    REQUIRE(seen.spans().size() == 4);
    CHECK(seen.spans()[0].kind == TaskKind::gemm);
    CHECK(seen.spans()[0].gpu == 0);                                 // devices 2 and 3 are all there are
    CHECK(to_microseconds(seen.spans()[0].start) == Approx(4.999));  // the copy from the host begins at 1 ns
    CHECK(seen.spans()[1].name == "mystery");
    CHECK(trace.spans[2].with_host);
    CHECK(seen.spans()[3].kind == TaskKind::copy);
    CHECK(seen.spans()[3].track == "stream 13");
    CHECK(trace.not_mapped.size() == 1);
    CHECK(error_of([&] {
              read(samples.database("empty.sqlite", "CREATE TABLE t (a)"));
          }).find("has no CUDA activity") != std::string::npos);
}

namespace {

/// A Nsight Systems database with one kernel.
std::string one_kernel(const std::string& values) {
    return "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES "
           "(1, 'gemm');"
           "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, "
           "streamId "
           "INTEGER, demangledName INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" +
           values + ", 7, 1);";
}

/// A PyTorch trace with one kernel.
std::string one_event(const std::string& base, const std::string& times, const std::string& device) {
    return R"({"baseTimeNanoseconds": )" + base +
           R"(, "traceEvents": [{"ph": "i"}, {"ph": "X", "cat": "kernel", "name": "gemm", )" + times +
           R"(, "args": {"device": )" + device + R"(, "stream": 7}}]})";
}

}  // namespace

TEST_CASE("spans that can't be are refused in every format, with file and place") {
    const Samples samples;
    const auto has = [](const std::string& error, const std::string& part) {
        INFO(error);
        return error.find(part) != std::string::npos && error.find('\n') == std::string::npos;
    };
    int number = 0;
    const auto nsight = [&](const std::string& values) {
        const auto path = samples.database(std::to_string(number++) + ".sqlite", one_kernel(values));
        return error_of([&] { read(path); });
    };
    CHECK(nsight("5, 9, 0").empty());
    CHECK(has(nsight("5, 9, -3"), "CUPTI_ACTIVITY_KIND_KERNEL row 1: is on GPU -3, expected 0 to 4095"));
    CHECK(has(nsight("5, 9, 2147483647"), "row 1: is on GPU 2147483647"));
    CHECK(has(nsight("5, 9, 4294967296"), "row 1: is on GPU 4294967296"));
    CHECK(has(nsight("9, 5, 0"), "row 1: ends before it starts"));
    CHECK(has(nsight("5, 9223372036854775807, 0"), "row 1: runs from 5 to 9223372036854775807 ns"));
    CHECK(has(nsight("-5, 9, 0"), "row 1: runs from -5"));
    CHECK(has(nsight("5, 9, 'x'"), "row 1: deviceId is no whole number"));
    CHECK(has(nsight("NULL, 9, 0"), "row 1: start is no whole number"));

    const auto error = [&](const std::string& name, const std::string& text) {
        return error_of([&] { read(samples.write(name, text)); });
    };
    const std::string times = R"("ts": 5, "dur": 1)", second = "a.json: /traceEvents/1";
    CHECK(error("a.json", one_event("0", times, "0")).empty());
    CHECK(has(error("a.json", one_event("9223372036854775807", times, "0")), "a.json: /baseTimeNanoseconds"));
    CHECK(has(error("a.json", one_event("4000000000000000000", times, "0")),
              second + ": runs from 40000000000"));
    CHECK(has(error("a.json", one_event("0", R"("ts": 9.2e15, "dur": 1)", "0")), second + "/ts"));
    CHECK(has(error("a.json", one_event("0", R"("ts": 5, "dur": 1e300)", "0")), second + "/dur"));
    CHECK(has(error("a.json", one_event("0", R"("ts": 5, "dur": -1)", "0")), second + "/dur"));
    CHECK(has(error("a.json", one_event("0", times, "-3")), second + "/args/device"));
    CHECK(has(error("a.json", one_event("0", times, "2147483647")), second + "/args/device"));

    const auto csv = [&](const std::string& row) {
        return error("a.csv",
                     "Kind,Kernel_Name,Agent_Id,Queue_Id,Start_Timestamp,End_Timestamp\nK,gemm," + row);
    };
    CHECK(csv("4,1,1,2\n").empty());
    CHECK(has(csv("4294967296,1,1,2\n"), "a.csv:2: is on GPU 4294967296"));
    CHECK(has(csv("4,1,1,9223372036854775807\n"), "a.csv:2: runs from 1 to"));
    CHECK(has(csv("4,1,3,2\n"), "a.csv:2: ends before it starts"));

    const auto rocprof = [&](const std::string& start, const std::string& agent) {
        return error("b.json", R"({"rocprofiler-sdk-tool": [{"agents": [{"id": {"handle": 1}, "type": 1},
            {"id": {"handle": 22}, "type": 2}], "kernel_symbols": [{"kernel_id": 5, "formatted_kernel_name":
            "Cijk_A"}], "buffer_records": {"kernel_dispatch": [{"end_timestamp": 9, "start_timestamp": )" +
                                   start + R"(, "dispatch_info": {"agent_id": {"handle": )" + agent +
                                   R"(}, "queue_id": {"handle": 3}, "kernel_id": 5}}]}}]})");
    };
    const std::string record = "/rocprofiler-sdk-tool/0/buffer_records/kernel_dispatch/0";
    CHECK(rocprof("5", "22").empty());
    CHECK(has(rocprof("10", "22"), record + ": ends before it starts"));
    CHECK(has(rocprof("5", "1"), record + "/dispatch_info/agent_id: is no agent of type 2"));
    CHECK(has(rocprof("5", "33"), record + "/dispatch_info/agent_id: is no agent of type 2"));

    const auto own = [&](const std::string& gpu, const std::string& end) {
        return error("c.json",
                     R"({"schema": 1, "system": "x", "spans": [{"name": "g", "kind": "gemm", "gpu": )" + gpu +
                         R"(, "stream": "s", "start_us": 1, "end_us": )" + end + "}]}");
    };
    CHECK(own("0", "2").empty());
    CHECK(has(own("0", "1e300"), "c.json: /spans/0/end_us"));
    CHECK(has(own("4096", "2"), "c.json: /spans/0/gpu"));
}

TEST_CASE("ranks are a GPU each, and each is there once") {
    const Samples samples;
    const auto rank = [&](const std::string& name, const std::string& number, const std::string& device) {
        return samples.write(name,
                             R"({"distributedInfo": {"rank": )" + number + R"(}, "traceEvents": [)" +
                                 R"({"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 1, )" +
                                 R"("args": {"device": 5, "stream": 7}}, {"ph": "X", "cat": "kernel", )" +
                                 R"("name": "gemm", "ts": 3, "dur": 1, "args": {"device": )" + device +
                                 R"(, "stream": 7}}]})");
    };
    const RecordedTrace three = read(rank("a.json", "3", "5"));
    CHECK(three.spans.at(1).gpu == 3);
    CHECK(error_of([&] { read(rank("b.json", "3", "6")); }).find("/traceEvents/1/args/device: is 6") !=
          std::string::npos);
    CHECK(error_of([&] {
              timeline({three, three});
          }).find("GPU 3 is in two of the files") != std::string::npos);
}

TEST_CASE("a trace that can't be read is one line with file and place") {
    const Samples samples;
    const auto error = [&](const std::string& name, const std::string& text) {
        return error_of([&] { read(samples.write(name, text)); });
    };
    CHECK(error("a.txt", "nothing").find("is of no known trace format") != std::string::npos);
    CHECK(error("a.json", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1}]})")
              .find("/traceEvents/0/args") != std::string::npos);
    CHECK(error("a.csv", "Kind,Kernel_Name,Agent_Id,Queue_Id,Start_Timestamp,End_Timestamp\nK,gemm,x,1,1,2\n")
              .find("a.csv:2: Agent_Id is 'x'") != std::string::npos);
    CHECK(error("b.csv", "Kind,Kernel_Name,Agent_Id,Queue_Id,Start_Timestamp,End_Timestamp\nK,gemm,1,1,3,2\n")
              .find("b.csv:2: ends before it starts") != std::string::npos);
    CHECK(error("c.csv", "a,b\n1,2\n").find("is of no known trace format") != std::string::npos);
    const auto as_csv = [&] {
        find_trace_importer("", "rocprof_csv").read(samples.write("c.csv", "a,b\n"), shipped_kernels());
    };
    CHECK(error_of(as_csv).find("is neither a kernel trace") != std::string::npos);
    CHECK(error("config.json", R"({"model_type": "llama"})").find("is the config of a Hugging Face model") !=
          std::string::npos);
    CHECK(error_of([] { find_trace_importer("x.json", "kinetto"); }).find("'kineto'") != std::string::npos);
}

}  // namespace overlap::test::importers_test
