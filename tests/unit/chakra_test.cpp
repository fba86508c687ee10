#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "sim/chakra/chakra_workload.hpp"
#include "sim/core/archive.hpp"
#include "sim/core/errors.hpp"
#include "sim/run/run.hpp"
#include "tests/public_data.hpp"
#include "tests/resolved.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::chakra_test {

using Catch::Matchers::Contains;

namespace {

/// Files NAME.<rank>.et of one folder.
class Traces {
public:
    std::string write(const std::vector<std::string>& files) const {
        for (std::size_t rank = 0; rank < files.size(); ++rank)
            std::ofstream(name() + "." + std::to_string(rank) + ".et", std::ios::binary) << files[rank];
        return name();
    }
    std::string name() const { return (folder_ / "trace").string(); }

private:
    test::TemporaryFolder folder_;
};

// A message is its length and then fields: the byte 8 · number + kind, where kind 0 is an integer, 2 a length and bytes.
std::string field(int number, std::uint64_t value) {
    std::string bytes(1, static_cast<char>(8 * number));
    for (; value > 127; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
    return bytes + static_cast<char>(value);
}
std::string with_length(const std::string& bytes) {
    return field(0, bytes.size()).substr(1) + bytes;
}
std::string field(int number, const std::string& bytes) {
    return static_cast<char>(8 * number + 2) + with_length(bytes);
}
/// An attribute with an int64_val, field 9.
std::string attribute(const std::string& name, std::uint64_t value) {
    return field(10, field(1, name) + field(9, value));
}
const std::string metadata = with_length(field(1, std::string("0.0.4")));

/// id, type, data dependency (field 5) and attributes.
std::string node(std::uint64_t id, int type, const std::string& rest) {
    return with_length(field(1, id) + field(2, "n" + std::to_string(id)) +
                       field(3, static_cast<std::uint64_t>(type)) + rest);
}
constexpr int compute = 4, send = 5, receive = 6, collective = 7;

Json operators(const std::string& name) {
    return read_chakra(name).workload.at("operators");
}

Workload round_trip(const Workload& workload, int ranks) {
    const Traces traces;
    const ChakraWorkload read = read_chakra(traces.write(to_chakra(workload, ranks)));
    CHECK(read.notes.empty());
    return read_workload({read.workload, "read"});
}

}  // namespace

TEST_CASE("numbers of a trace mean what they mean to ASTRA-sim", "[chakra]") {
    const Traces traces;
    // An all-gather (2) of 1 MiB a rank, then 7 us, then 3e9 operations on 2 MB.
    const std::string file =
        metadata + node(0, collective, attribute("comm_type", 2) + attribute("comm_size", 1 << 20)) +
        node(1, compute, field(5, 0) + field(7, 7)) +
        node(2, compute,
             field(5, 1) + attribute("num_ops", 3'000'000'000) + attribute("tensor_size", 2'000'000) +
                 attribute("colour", 1));
    const ChakraWorkload read = read_chakra(traces.write({file, file, file, file}));
    const Json& list = read.workload.at("operators");
    REQUIRE(list.size() == 3);
    CHECK(list[0].at("bytes") == 4 * (1 << 20));
    CHECK(list[1].at("time_us") == 7);
    CHECK(list[1].at("needs") == Json{"n0"});
    CHECK(list[2].at("flops") == 3e9);
    CHECK(list[2].at("read_bytes") == 2e6);
    CHECK(read.workload.at("ranks") == 4);
    REQUIRE(read.notes.size() == 2);
    CHECK_THAT(read.notes[1], Contains("colour of 4"));
}

TEST_CASE("a recorded time is what a kernel takes anywhere", "[chakra]") {
    RunConfig config;
    config.topology = "h200_4";
    config.schedule = "serial";
    config.workload = parse_json(R"({"operators": [
        {"name": "a", "type": "memory_bound", "read_bytes": 0, "write_bytes": 0, "time_us": 1000, "ranks": [1]},
        {"name": "b", "type": "send", "bytes": 1000, "from": [1], "to": [0], "needs": ["a"]},
        {"name": "c", "type": "memory_bound", "read_bytes": 0, "write_bytes": 0, "time_us": 500, "ranks": [0], "needs": ["b"]},
        {"name": "d", "type": "memory_bound", "read_bytes": 0, "write_bytes": 0, "time_us": 5, "needs": ["c"]}]})",
                                 "list");
    const Scenario scenario = test::resolved(config);
    // a on one rank, the message, c on one, d on four
    CHECK(scenario.graph().size() == 7);
    // 1,505 us and the launches of three kernels and a copy of 1 kB, each below 25 us
    const double us = to_microseconds(predict(scenario).makespan);
    CHECK(us > 1505);
    CHECK(us < 1605);
}

TEST_CASE("lists come back from a trace as they were", "[chakra]") {
    const Workload list = read_workload(
        {parse_json(
             R"({"name": "all_kinds", "description": "each kind of operator", "ranks": 4, "operators": [
        {"name": "gemm", "type": "gemm", "m": 512, "n": 256, "k": 128, "dtype": "fp8", "batch": 3},
        {"name": "ag", "type": "collective", "collective": "all_gather", "bytes": 1001, "dtype": "fp16", "needs": ["gemm"]},
        {"name": "first", "type": "send", "bytes": 77, "from": [0, 1], "to": [1, 0], "needs": ["gemm"]},
        {"name": "act", "type": "memory_bound", "read_bytes": 10, "write_bytes": 20.5, "needs": ["ag", "first"]},
        {"name": "half", "type": "memory_bound", "read_bytes": 0, "write_bytes": 0, "time_us": 0.25, "ranks": [2, 3]},
        {"name": "sum", "type": "reduction", "bytes": 100, "parts": 3, "needs": ["act"]},
        {"name": "fmha", "type": "memory_bound", "read_bytes": 5, "write_bytes": 5, "flops": 1e12, "dtype": "fp16", "needs": ["sum"]},
        {"name": "rs", "type": "collective", "collective": "reduce_scatter", "bytes": 4096, "dtype": "bf16", "needs": ["sum", "fmha"]}]})",
             "list"),
         "list"});
    CHECK(to_json(round_trip(list, 4)) == to_json(list));
}

TEST_CASE("shipped workloads come back from traces", "[chakra]") {
    for (const char* name : {"llama3_70b_mlp_layer", "llama3_70b_gate_up_forward"}) {
        INFO(name);
        RunConfig config;
        config.workload = name;
        config.topology = "h200_8";
        config.schedule = "serial";
        const Workload workload =
            read_workload(read_config_file(test::shipped.find("workloads", name), "workload").view());
        const Workload read = round_trip(workload, 8);
        if (workload.pair() == nullptr) {
            Workload expected = workload;
            expected.ranks = 8;
            CHECK(to_json(read) == to_json(expected));
        }
        const Seconds before = predict(test::resolved(config)).makespan;
        config.workload = to_json(read);
        CHECK(predict(test::resolved(config)).makespan == before);
    }
}

TEST_CASE("ranks may differ", "[chakra]") {
    const Traces traces;
    const std::string to_1 = attribute("comm_size", 64) + attribute("comm_dst", 1),
                      from_0 = attribute("comm_size", 64) + attribute("comm_src", 0);
    // A pipeline: rank 0 computes and sends; rank 1 receives and computes.
    traces.write({metadata + node(0, compute, field(7, 5)) + node(1, send, field(5, 0) + to_1),
                  metadata + node(7, receive, from_0) + node(8, compute, field(5, 7) + field(7, 3))});
    const Json list = operators(traces.name());
    REQUIRE(list.size() == 3);
    CHECK(
        list[0] ==
        parse_json(
            R"({"name": "n0@0", "type": "memory_bound", "read_bytes": 0, "write_bytes": 0, "time_us": 5, "ranks": [0], "needs": []})",
            ""));
    CHECK(list[1] ==
          parse_json(
              R"({"name": "n1@0", "type": "send", "bytes": 64, "from": [0], "to": [1], "needs": ["n0@0"]})",
              ""));
    CHECK(list[2].at("needs") == Json{"n1@0"});
    // Any file of the trace names it.
    CHECK(operators(traces.name() + ".1.et") == list);
}

TEST_CASE("collectives of process groups are of their ranks", "[chakra]") {
    // Tensor parallel in groups 0 and 1, data parallel in groups 2 and 3 of four ranks; 1 MiB a rank is gathered.
    const auto file = [](std::uint64_t tensor, std::uint64_t data) {
        return metadata +
               node(1, collective,
                    attribute("comm_type", 2) + attribute("comm_size", 1 << 20) +
                        attribute("pg_name", tensor)) +
               node(2, compute,
                    field(5, 1) + attribute("num_ops", 1'000'000'000'000) +
                        attribute("tensor_size", 1 << 26)) +
               node(3, collective,
                    field(5, 2) + attribute("comm_type", 0) + attribute("comm_size", 1 << 25) +
                        attribute("pg_name", data));
    };
    const Traces traces;
    traces.write({file(0, 2), file(0, 3), file(1, 2), file(1, 3)});
    const Json list = operators(traces.name());
    REQUIRE(list.size() == 8);
    CHECK(list[0] ==
          parse_json(R"({"name": "n1@0", "type": "collective", "collective": "all_gather", "bytes": 2097152,
        "ranks": [0, 1], "needs": []})",
                     ""));
    RunConfig config;
    config.topology = "h100_4";
    config.schedule = "concurrent";
    config.workload = traces.name();
    const Seconds from_trace = predict(test::resolved(config)).makespan;
    config.workload = parse_json(R"({"operators": [
        {"name": "gather", "type": "collective", "collective": "all_gather", "bytes": 2097152, "group": {"size": 2, "stride": 1}},
        {"name": "mlp", "type": "memory_bound", "read_bytes": 67108864, "write_bytes": 0, "flops": 1000000000000, "needs": ["gather"]},
        {"name": "grad", "type": "collective", "collective": "all_reduce", "bytes": 33554432, "group": {"size": 2, "stride": 2}, "needs": ["mlp"]}]})",
                                 "");
    CHECK(from_trace == predict(test::resolved(config)).makespan);

    const std::string groups = traces.name() + ".json";
    std::ofstream(groups) << R"({"0": [0, 1], "1": [2, 3], "2": [0, 2], "3": [1, 3]})";
    CHECK(operators(traces.name()) == list);
    const auto refused = [&](const std::string& text, const std::string& said) {
        std::ofstream(groups) << text;
        CHECK_THROWS_WITH(read_chakra(traces.name()), Contains(said) && !Contains("\n"));
    };
    refused(R"({"0": [0, 1], "1": [2, 3], "2": [0, 2]})",
            "process group '3', which " + groups + " does not have (it has 0, 1, 2)");
    refused(R"({"0": [0, 1, 2], "1": [2, 3], "2": [0, 2], "3": [1, 3]})",
            "process group '0' on ranks 0, 1 only, expected one on ranks 0, 1, 2");
    refused(R"({"0": [0], "1": [2, 3], "2": [0, 2], "3": [1, 3]})", "process group '0', which has rank 0");
    refused(R"({"0": [0, 4]})", "/0/1");
    refused(R"({"0": [0, 0]})", "names one twice");
    std::filesystem::remove(groups);
    // Without a file, a group that nobody else is in.
    traces.write({file(0, 2), file(0, 3), file(1, 2), file(7, 3)});
    CHECK_THROWS_WITH(read_chakra(traces.name()), Contains("no other rank has a collective"));
}

TEST_CASE("a collective of any ranks runs beside what the others do", "[chakra]") {
    RunConfig config;
    config.topology = "mi300x_16";
    config.schedule = "concurrent";
    // Ranks 0 to 2 and 9: three GPUs of one node, one of the other. Rank 5 computes for 1 ms meanwhile.
    config.workload = parse_json(R"({"operators": [
        {"name": "sum", "type": "collective", "collective": "all_reduce", "bytes": 1048576, "ranks": [0, 1, 2, 9]},
        {"name": "other", "type": "memory_bound", "read_bytes": 0, "write_bytes": 0, "time_us": 1000, "ranks": [5]},
        {"name": "after", "type": "memory_bound", "read_bytes": 0, "write_bytes": 0, "time_us": 500, "ranks": [9], "needs": ["sum"]}]})",
                                 "");
    const Scenario scenario = test::resolved(config);
    CHECK(to_microseconds(predict(scenario).makespan) == Approx(1000).epsilon(0.03));
    const TaskGraph graph = scenario.graph();
    std::set<int> gpus;
    for (TaskId id = 0; id < graph.size(); ++id)
        if (const auto* copy = std::get_if<CopyWork>(&graph[id].work)) gpus.insert({copy->src, copy->dst});
    CHECK(gpus == std::set<int>{0, 1, 2, 9});
    config.workload["operators"][0]["ranks"] = {0, 16};
    CHECK_THROWS_WITH(test::resolved(config), Contains("rank 16") && !Contains("\n"));
    config.workload["operators"][0]["ranks"] = {0, 1};
    config.workload["operators"][0]["group"] = {{"size", 2}};
    CHECK_THROWS_WITH(test::resolved(config), Contains("stands beside"));
}

TEST_CASE("what can't be expressed is one line", "[chakra]") {
    const std::string all_reduce = attribute("comm_type", 0) + attribute("comm_size", 8);
    const auto refused = [](const std::vector<std::string>& files, const std::string& said) {
        const Traces traces;
        traces.write(files);
        CHECK_THROWS_WITH(read_chakra(traces.name()), Contains(said) && !Contains("\n"));
    };
    refused({metadata + node(3, 2, "")}, "node 3 'n3' loads from or stores to remote memory");
    refused({metadata + node(3, collective, attribute("comm_type", 5) + attribute("comm_size", 8))},
            "is a BROADCAST");
    refused({metadata + node(3, 9, "")}, "has type 9");
    refused({metadata + node(0, collective, all_reduce), metadata + node(0, compute, field(7, 1))},
            "is a collective of all ranks on rank 0 only");
    refused({metadata + node(0, compute, field(5, 4) + field(7, 1))},
            "waits for node 4, which is not in the file");
    refused({metadata + node(0, compute, field(5, 1) + field(7, 1)) +
             node(1, compute, field(5, 0) + field(7, 1))},
            "waits for itself");
    refused({metadata + node(0, send, attribute("comm_size", 8) + attribute("comm_dst", 1)), metadata},
            "sends a message that no rank receives");
    refused({metadata + node(0, send, attribute("comm_size", 8) + attribute("comm_dst", 5)), metadata},
            "has comm_dst 5");
    refused({metadata}, "has no operator");
    refused({""}, "is missing: the file is empty");
    refused({metadata + "\xff\xff\xff\xff\x7f"}, "bytes follow, but the file has 0 more");
    refused({metadata + std::string("\x02\x08", 2)}, "bytes follow, but the file has 1 more");
    refused({std::string("{\"schema\": 1}")}, "message 0 says");
}

TEST_CASE("sample workloads of ASTRA-sim run", "[chakra]") {
    const TemporaryFolder folder;  // astra-sim/astra-sim commit 518bd513ae11 (MIT), as it ships them
    unpack(test::public_data() / "chakra/astra_sim.tar.xz", folder.path());
    const std::filesystem::path samples = folder.path() / "astra_sim",
                                one = samples / "reduce_scatter/reduce_scatter";
    CHECK(operators(one.string()) == parse_json(R"([{"name": "reduce_scatter_4npus_1MB", "type": "collective",
        "collective": "reduce_scatter", "bytes": 1048576, "needs": []}])",
                                                ""));
    // A ring of 8: 7 steps that send 131072 bytes and add, 7 that send.
    const std::string ring = (samples / "custom_ring_allreduce_8npus_1MB/custom_allreduce").string();
    std::map<std::string, int> kinds;
    for (const Json& op : operators(ring)) ++kinds[op.at("type")];
    CHECK(kinds == std::map<std::string, int>{{"send", 14}, {"memory_bound", 7}});
    RunConfig config;
    config.topology = "h200_8";
    config.schedule = "serial";
    config.workload = ring;
    // The sums take 7 us each.
    CHECK(predict(test::resolved(config)).makespan > microseconds(49));
}

}  // namespace overlap::test::chakra_test
