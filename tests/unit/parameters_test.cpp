#include "sim/schedules/parameters.hpp"

#include <catch2/catch.hpp>

#include "tests/test_support.hpp"

namespace overlap::test::parameters_test {

using Catch::Contains;

namespace {

std::vector<std::string> every_name() {
    std::vector<std::string> names;
    for (const ParameterInfo& info : schedule_parameters()) names.push_back(info.name);
    return names;
}

/// Read for 5 GPUs of 100 compute units, with every parameter accepted.
ScheduleParams read(const std::string& text, bool collective_first = true, bool single_stream = false,
                    int gpus = 5) {
    const Topology topology = topology_of(gpus, gpus > 1 ? group("full_mesh") : "");
    const Json json = parse_json(text, "x.json");
    const std::vector<std::string> accepted = every_name();
    return read_parameters({json, "x.json", "/params"}, {accepted, collective_first, single_stream},
                           topology);
}

std::string reading(const std::string& text, bool single_stream = false, int gpus = 5) {
    return error_of([&] { read(text, true, single_stream, gpus); });
}

}  // namespace

TEST_CASE("defaults: one chunk a GPU, DMA, rotation, packing charged") {
    const ScheduleParams params = read("{}");
    CHECK(params.chunks == 5);
    CHECK(params.transfers.agent == Agent::dma);
    CHECK(params.transfers.cus == 0);
    CHECK(params.transfers.order == PeerOrder::rotation);
    CHECK_FALSE(params.transfers.single_stream);
    CHECK(params.scatter);
    CHECK(params.gemm == GemmGrain::shard);
    CHECK(params.point.shape == CommShape::one_d);
    CHECK(params.point.uniformity == Uniformity::hetero);
    CHECK(params.point.granularity == Granularity::fused);
    CHECK(params.algorithm == "direct");
    CHECK(params.transfers.commands == DmaCommands::copy);
    CHECK_FALSE(params.transfers.prelaunch);
}

TEST_CASE("defaults on several nodes: one chunk a GPU of a node, collectives that keep to their rail") {
    const Topology nodes = topology_of(2, group("full_mesh") + "," + group("rails"), 3);
    const Json json = Json::object();
    const std::vector<std::string> accepted = every_name();
    const ScheduleParams params = read_parameters({json, "x"}, {accepted}, nodes);
    CHECK(params.chunks == 2);
    CHECK(params.algorithm == "hierarchical");
}

TEST_CASE("transfers are pulled by DMA engines that feed a GEMM, and pushed otherwise") {
    CHECK(read("{}", true).transfers.direction == Direction::pull);
    CHECK(read("{}", false).transfers.direction == Direction::push);
    CHECK(read(R"({"agent": "cu"})", true).transfers.direction == Direction::push);
    CHECK(read(R"({"agent": "cu", "transfer": "pull"})").transfers.direction == Direction::pull);
    CHECK(read(R"({"transfer": "push"})").transfers.direction == Direction::push);
}

TEST_CASE("a copy kernel takes the device's units, but all of a GPU together at most half of it") {
    CHECK(read(R"({"agent": "cu"})").transfers.cus == 4);  // default_cus; 4 streams · 4 = 16 of 100
    // 29 peers: 100 / 2 / 29 = 1 unit each.
    CHECK(read(R"({"agent": "cu"})", true, false, 30).transfers.cus == 1);
    CHECK(read(R"({"agent": "cu"})", true, true, 30).transfers.cus == 4);  // one stream
    CHECK(read(R"({"agent": "cu", "copy_cus": 24})").transfers.cus == 24);
    // A group of 5 of 30 GPUs has 4 peers: the device's 4 units again, unless another number than the default is given.
    const Topology five = topology_of(5, group("full_mesh"));
    const auto in_five = [&](const std::string& text) {
        return transfers_in_group(read(text, true, false, 30).transfers, five).cus;
    };
    CHECK(in_five(R"({"agent": "cu"})") == 4);
    CHECK(in_five(R"({"agent": "cu", "copy_cus": 1})") == 4);  // the default, as a result's config has it
    CHECK(in_five(R"({"agent": "cu", "copy_cus": 2})") == 2);
    CHECK(in_five("{}") == 0);
    CHECK(read(R"({"agent": "cu", "copy_priority": "high"})").transfers.priority == Priority::high);
    CHECK_THAT(reading(R"({"copy_priority": "high"})"), Contains("/params/copy_priority: needs agent 'cu'"));
    // 4 streams · 25 would be all 100 units; at most 99 / 4 = 24.
    CHECK_THAT(reading(R"({"agent": "cu", "copy_cus": 25})"),
               Contains("x.json: /params/copy_cus: is 25, expected a whole number from 1 to 24"));
    CHECK(reading(R"({"agent": "cu", "copy_cus": 99})", true) == "");
    CHECK_THAT(reading(R"({"agent": "cu", "copy_cus": 0})"), Contains("/params/copy_cus: is 0"));
    CHECK_THAT(reading(R"({"agent": "cu"})", false, 101),
               Contains("/params/agent: is 'cu', but 100 transfers"));
}

TEST_CASE("GEMMs may use all compute units, or as many as a mask says") {
    CHECK(read("{}").gemm_cus == 100);
    CHECK(read(R"({"gemm_cus": 92})").gemm_cus == 92);
    for (const std::string text : {"0", "101", "8.5"})
        CHECK_THAT(reading(R"({"gemm_cus": )" + text + "}"),
                   Contains("x.json: /params/gemm_cus: is " + text) && Contains("from 1 to 100"));
    // 100 units less 4 streams · 20, and less one stream of 30.
    CHECK(read(R"({"agent": "cu", "copy_cus": 20, "gemm_cus": "rest"})").gemm_cus == 20);
    CHECK(read(R"({"agent": "cu", "copy_cus": 30, "gemm_cus": "rest"})", true, true).gemm_cus == 70);
    CHECK_THAT(reading(R"({"gemm_cus": "rest"})"),
               Contains("/params/gemm_cus: is 'rest', which needs agent 'cu'"));
    CHECK_THAT(reading(R"({"agent": "cu", "gemm_cus": "rset"})"),
               Contains("/params/gemm_cus: is 'rset' (did you mean 'rest'?)"));
}

TEST_CASE("kernels that run already need no figures of DMA commands, but a library's are launched") {
    CHECK(read(R"({"agent": "cu", "prelaunch": true})").transfers.prelaunch);
    CHECK_THAT(reading(R"({"agent": "cu", "prelaunch": true, "algorithm": "library"})"),
               Contains("/params/prelaunch: needs algorithm 'direct', not 'library'"));
    CHECK_THAT(reading(R"({"agent": "cu", "dma_commands": "back_to_back"})"),
               Contains("/params/dma_commands: needs agent 'dma'"));
}

TEST_CASE("the units of a library's kernel need the library, and one that was measured") {
    CHECK(read("{}").transfers.channels == 0);
    CHECK_THAT(reading(R"({"channels": 8})"),
               Contains("x.json: /params/channels: needs algorithm 'library'"));
    const std::string text = R"({"algorithm": "library", "channels": 65})";
    CHECK_THAT(reading(text), Contains("/params/channels: needs a library that was measured, which round"));
    const Json json = parse_json(text, "x.json");
    CHECK_THAT(error_of([&] {
                   const std::vector<std::string> accepted = every_name();
                   read_parameters({json, "x.json", "/params"}, {accepted}, shipped.topology("mi300x_8"));
               }),
               Contains("/params/channels: is 65, expected a whole number from 1 to 64"));
}

TEST_CASE("given values are taken") {
    const ScheduleParams params =
        read(R"({"chunks": 7, "order": "ascending", "scatter": false, "gemm": "chunk", "comm_shape": "2d",
                 "uniformity": "uniform", "granularity": "unfused", "algorithm": "ring"})");
    CHECK(params.chunks == 7);
    CHECK(params.transfers.order == PeerOrder::ascending);
    CHECK_FALSE(params.scatter);
    CHECK(params.gemm == GemmGrain::chunk);
    CHECK(params.point.shape == CommShape::two_d);
    CHECK(params.point.uniformity == Uniformity::uniform);
    CHECK(params.point.granularity == Granularity::unfused);
    CHECK(params.algorithm == "ring");
}

TEST_CASE("wrong values are errors with their place") {
    CHECK_THAT(reading(R"({"chunks": 0})"),
               Contains("x.json: /params/chunks: is 0, expected a whole number from 1"));
    CHECK_THAT(reading(R"({"chunks": 65537})"), Contains("/params/chunks: is 65537"));
    CHECK_THAT(reading(R"({"chunks": "4"})"), Contains(R"(/params/chunks: is "4")"));
    CHECK_THAT(reading(R"({"agent": "dmaa"})"), Contains("/params/agent: is 'dmaa' (did you mean 'dma'?)"));
    CHECK_THAT(reading(R"({"transfer": "pul"})"), Contains("did you mean 'pull'"));
    CHECK_THAT(reading(R"({"order": "random"})"), Contains("/params/order: is 'random'"));
    CHECK_THAT(reading(R"({"scatter": 1})"), Contains("/params/scatter: is 1, expected true or false"));
    CHECK_THAT(reading(R"({"comm_shape": "3d"})"), Contains("/params/comm_shape: is '3d'"));
    CHECK_THAT(reading(R"({"algorithm": "rign"})"), Contains("did you mean 'ring'"));
    CHECK_THAT(reading(R"({"dma_commands": "back_to_back"})"),
               Contains("/params/dma_commands: has no figures for device round"));
    CHECK_THAT(reading(R"({"prelaunch": true})"),
               Contains("/params/prelaunch: has no figures for device round"));
    CHECK_THAT(reading(R"({"copy_cus": 4})"), Contains("/params/copy_cus: needs agent 'cu'"));
    CHECK_THAT(reading(R"({"chunk": 4})"),
               Contains("/params/chunk: is no parameter of this schedule (did you mean 'chunks'?)"));
}

TEST_CASE("a schedule refuses parameters that are not its own") {
    const Topology topology = topology_of(2, group("full_mesh"));
    const Json json = parse_json(R"({"chunks": 2})", "x.json");
    const std::vector<std::string> accepted{"agent"};
    CHECK_THAT(error_of([&] {
                   read_parameters({json, "x.json"}, {accepted}, topology);
               }),
               Contains("/chunks: is no parameter of this schedule (allowed: agent)"));
    // Not accepted, so not by default either.
    const Json nothing = Json::object();
    CHECK(read_parameters({nothing, "x.json"}, {accepted}, topology).chunks == 1);
}

TEST_CASE("resolved parameters are read back as they were written") {
    const std::vector<std::string> names = every_name();
    int checked = 0;
    for (const std::string text : {"{}", R"({"agent": "cu", "chunks": 3})",
                                   R"({"transfer": "push", "comm_shape": "2d", "scatter": false})"}) {
        const Json written = to_json(read(text), names);
        CHECK(to_json(read(written.dump()), names) == written);
        CHECK(written.contains("copy_cus") == (written.at("agent") == "cu"));
        ++checked;
    }
    CHECK(checked == 3);
}

}  // namespace overlap::test::parameters_test
