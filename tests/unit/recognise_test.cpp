#include "sim/importers/recognise.hpp"

#include <catch2/catch.hpp>

#include <fstream>

#include "sim/importers/iterations.hpp"
#include "sim/importers/recorded_list.hpp"
#include "sim/importers/time_shares.hpp"
#include "sim/workload/workload.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::recognise_test {
namespace {

constexpr std::int64_t us = 1000;

RecordedSpan span(TaskKind kind, std::int64_t start_us, std::int64_t end_us,
                  const std::string& track = "stream 7") {
    RecordedSpan span{.name = task_kind_names[static_cast<std::size_t>(kind)],
                      .kind = kind,
                      .track = track,
                      .start_ns = start_us * us,
                      .end_ns = end_us * us};
    span.waits = kind == TaskKind::collective;
    return span;
}

RecordedSpan gemm(std::int64_t start_us, std::int64_t end_us, const std::string& op,
                  std::vector<std::vector<std::int64_t>> dims) {
    RecordedSpan one = span(TaskKind::gemm, start_us, end_us);
    const std::vector<std::string> types(dims.size(), "c10::BFloat16");
    one.launch.by = std::make_shared<const RecordedOperator>(RecordedOperator{op, std::move(dims), types});
    return one;
}

RecordedSpan collective(std::int64_t start_us, std::int64_t end_us, const std::string& name, std::int64_t in,
                        std::int64_t out, const std::string& track = "stream 7") {
    RecordedSpan one = span(TaskKind::collective, start_us, end_us, track);
    one.collective =
        std::make_shared<const RecordedCollective>(RecordedCollective{name, in, out, "BFloat16", 2});
    return one;
}

/// The same spans on two GPUs.
std::vector<RecordedSpan> on_two(std::vector<RecordedSpan> spans) {
    const std::size_t count = spans.size();
    for (std::size_t i = 0; i < count; ++i) {
        spans.push_back(spans[i]);
        spans.back().gpu = 1;
    }
    return spans;
}

}  // namespace

TEST_CASE("a collective and a GEMM are a pair, with the shapes of the operator", "[recognise]") {
    // 512 x 1024, gathered from two halves, times 1024 x 256
    const auto spans = on_two({collective(0, 50, "_allgather_base", 262144, 524288),
                               gemm(50, 90, "aten::mm", {{512, 1024}, {1024, 256}})});
    const Recognised found = recognise(spans);
    CHECK(
        found.config ==
        parse_json(
            R"({"schedule": "serial", "params": {"algorithm": "library"}, "workload": {"collective": "all_gather",
        "order": "collective_first", "gemm": {"m": 512, "n": 256, "k": 1024, "dtype": "bf16"}}})",
            ""));
    CHECK(found.notes.size() == 1);  // no doubt: 512 x 1024 = 524288
    const auto other = on_two({gemm(0, 40, "aten::linear", {{4, 128, 1024}, {256, 1024}}),
                               collective(40, 60, "reduce_scatter_tensor_coalesced", 131072, 65536)});
    const Recognised scattered = recognise(other);
    CHECK(
        scattered.config.at("workload") ==
        parse_json(
            R"({"collective": "reduce_scatter", "order": "gemm_first", "gemm": {"m": 512, "n": 256, "k": 1024, "dtype": "bf16"}})",
            ""));
    CHECK(scattered.notes.size() == 1);
}

TEST_CASE("what moves and the GEMM's time are hints at a shape that was not recorded", "[recognise]") {
    ShapeHint hint;
    const auto guess = [&](const ShapeHint& given) {
        hint = given;
        return std::optional(GemmShape{512, 256, 1024});
    };
    const auto gathers =
        on_two({collective(0, 50, "_allgather_base", 262144, 524288), span(TaskKind::gemm, 50, 90)});
    const Recognised found = recognise(gathers, {.guess = guess});
    CHECK(found.config.at("workload").at("gemm").at("n") == 256);
    CHECK(found.notes.front().find(
              "GEMM 512x256x1024 bf16 guessed: 524288 elements that move are M x K, N by") == 0);
    CHECK((hint.operand == 524288 && hint.of_a && hint.parts == 1 && hint.dtype == DType::bf16));
    CHECK(hint.time == microseconds(40));
    const auto scatters = on_two(
        {span(TaskKind::gemm, 0, 40), collective(40, 60, "reduce_scatter_tensor_coalesced", 131072, 65536)});
    recognise(scatters, {.guess = guess});
    CHECK((hint.operand == 131072 && !hint.of_a));
    // What was recorded or given goes before.
    recognise(on_two({collective(0, 50, "_allgather_base", 262144, 524288),
                      gemm(50, 90, "aten::mm", {{512, 1024}, {1024, 256}})}),
              {.guess = guess});
    recognise(gathers, {.gemm = GemmShape{512, 256, 1024}, .guess = guess});
    CHECK(hint.operand == 131072);
    CHECK(recognise(gathers, {.guess = [](const ShapeHint&) { return std::nullopt; }}).what.empty());
}

TEST_CASE("a pair without shapes needs one", "[recognise]") {
    auto spans = on_two({collective(0, 50, "_allgather_base", 262144, 524288), span(TaskKind::gemm, 50, 90)});
    CHECK(recognise(spans).what.empty());
    CHECK(recognise(spans).why_not.find("record_shapes") != std::string::npos);
    CHECK(recognise(spans, {.gemm = GemmShape{512, 256, 1024}}).config.at("workload").at("gemm").at("n") ==
          256);
    // A shape that the collective contradicts is doubtful.
    const Recognised doubtful = recognise(spans, {.gemm = GemmShape{512, 256, 2048}});
    REQUIRE(doubtful.notes.size() == 2);
    CHECK(doubtful.notes[1].find(
              "doubtful: the collective has 524288 elements, the GEMM's operand 1048576") == 0);
}

TEST_CASE("GEMMs of shards and copies between GPUs are async_tp", "[recognise]") {
    const std::vector<std::vector<std::int64_t>> half{{256, 1024}, {1024, 256}};
    const auto gathers = on_two({span(TaskKind::local_copy, 0, 5), gemm(5, 25, "aten::mm", half),
                                 span(TaskKind::copy, 5, 20, "stream 14"), gemm(25, 45, "aten::mm", half),
                                 span(TaskKind::local_copy, 45, 50)});
    const Recognised found = recognise(gathers);
    CHECK(found.config ==
          parse_json(R"({"schedule": "async_tp", "params": {}, "workload": {"collective": "all_gather",
        "order": "collective_first", "gemm": {"m": 512, "n": 256, "k": 1024, "dtype": "bf16"}}})",
                     ""));
    const auto scatters = on_two({gemm(5, 25, "aten::mm", half), span(TaskKind::copy, 25, 40, "stream 14"),
                                  gemm(25, 45, "aten::mm", half)});
    CHECK(recognise(scatters).config.at("workload").at("collective") == "reduce_scatter");
}

TEST_CASE("GEMMs of shards without operators may be of several schedules") {
    const auto spans = on_two({span(TaskKind::gemm, 5, 25), span(TaskKind::copy, 5, 20, "stream 14"),
                               span(TaskKind::gemm, 25, 45)});
    const Recognised found = recognise(spans, {.gemm = GemmShape{512, 256, 1024}});
    CHECK(found.what.empty());
    CHECK(found.why_not.find("async_tp, shard_direct, shard_p2p") != std::string::npos);
}

TEST_CASE("anything else is a list, and kernels without shapes take their time", "[recognise]") {
    const std::vector<std::vector<std::int64_t>> shapes{{512, 1024}, {1024, 256}};
    const auto spans = on_two({gemm(0, 40, "aten::mm", shapes), span(TaskKind::memory_bound, 40, 50),
                               collective(45, 80, "allreduce", 131072, 131072, "stream 9"),
                               gemm(50, 90, "aten::mm", shapes), gemm(90, 130, "aten::mm", shapes)});
    const Recognised found = recognise(spans);
    CHECK(found.config.at("schedule") == "concurrent");
    const Json& list = found.config.at("workload").at("operators");
    REQUIRE(list.size() == 5);
    CHECK(
        list[1] ==
        parse_json(
            R"({"name": "memory_bound_0", "type": "memory_bound", "read_bytes": 0.0, "write_bytes": 0.0, "recorded_us": 10.0, "gap_us": 0.0,
        "needs": ["mm_0"]})",
            ""));
    // The collective began when mm_0 had ended; the last GEMM when the collective had.
    CHECK(
        list[2] ==
        parse_json(
            R"({"name": "collective_0", "type": "collective", "collective": "all_reduce", "bytes": 262144.0, "dtype": "bf16",
        "stream": "stream_9", "needs": ["mm_0"]})",
            ""));
    CHECK(list[3].at("needs") == Json{"memory_bound_0"});
    CHECK(list[4].at("needs") == Json{"mm_1", "collective_0"});
    CHECK(read_workload({found.config.at("workload"), "list"}).ranks == 2);
}

TEST_CASE("a list as recorded has each operator's time, gap and host", "[recognise]") {
    // Enqueued at 0, 8 and 9 us; the third kernel begins 2 us before the second one ends, as PDL allows.
    std::vector<RecordedSpan> spans{span(TaskKind::gemm, 10, 30), span(TaskKind::memory_bound, 33, 43),
                                    span(TaskKind::gemm, 41, 51)};
    for (const auto& [place, launched] : {std::pair(0, 0), {1, 8}, {2, 9}})
        spans[static_cast<std::size_t>(place)].launch.ns = launched * us;
    const RecordedList list = list_of(spans, 1, Prices::recorded);
    const auto at = [&](std::size_t i, const char* key) { return list.operators[i].at(key).get<double>(); };
    CHECK(at(0, "recorded_us") == Approx(20));
    CHECK(at(1, "recorded_us") == Approx(10));
    CHECK(at(1, "gap_us") == Approx(3));
    CHECK(at(2, "recorded_us") == Approx(8));  // from 43 to 51
    CHECK(at(2, "gap_us") == Approx(0));
    CHECK_FALSE(list.operators[1].contains("host_us"));  // it was enqueued before the iteration began
    CHECK(list.shares.recorded_us == Approx(38));
}

TEST_CASE("a moment of an iteration counts once, for what computes first", "[recognise]") {
    // GEMM 0-40, an all-reduce 30-70 beside it, a kernel 60-80, nothing until 90: the host enqueued the last at 85.
    std::vector<RecordedSpan> spans{span(TaskKind::gemm, 0, 40),
                                    collective(30, 70, "allreduce", 8, 8, "stream 9"),
                                    span(TaskKind::memory_bound, 60, 80), span(TaskKind::gemm, 90, 100)};
    spans[3].launch.ns = 85 * us;
    std::map<std::string, double> times;
    for (const TimeShare& share : time_shares(spans)) times[share.what] = share.us;
    CHECK(times == std::map<std::string, double>{{"GEMM", 50},
                                                 {"other kernels", 20},
                                                 {"exposed all_reduce", 20},
                                                 {"host (nothing was enqueued)", 5},
                                                 {"idle (launches, waits)", 5}});
}

TEST_CASE("ranks that start late are waited for in the first collective, which is clipped", "[recognise]") {
    // Rank 1 starts 30 us late: rank 0's copy ends at 10, its collective waits 30 of 50 us.
    Iteration one{"0",
                  {span(TaskKind::local_copy, 0, 10), collective(10, 60, "allreduce", 8, 8),
                   span(TaskKind::gemm, 60, 100)}};
    for (RecordedSpan late : {span(TaskKind::local_copy, 30, 40), collective(40, 60, "allreduce", 8, 8),
                              span(TaskKind::gemm, 60, 100)}) {
        late.gpu = 1;
        one.spans.push_back(late);
    }
    CHECK(to_microseconds(clip_start_skew(one)) == Approx(30));
    CHECK(one.spans[0].start_ns == 30 * us);
    CHECK(one.spans[0].end_ns == 40 * us);
    CHECK(one.spans[1].start_ns == 40 * us);
    CHECK(one.spans[1].end_ns == 60 * us);
    CHECK(one.spans[2].start_ns == 60 * us);
    CHECK(to_microseconds(one.timeline().end()) == Approx(70));
    CHECK(clip_start_skew(one) == Seconds());  // once
}

TEST_CASE("tables of kernels: the first entry of the last file counts", "[recognise]") {
    const test::TemporaryFolder folder;
    std::ofstream(folder / "own.json")
        << R"({"schema": 1, "kernels": [{"is": "reduce", "names": ["my_SUM", "gemm_sum"]}]})";
    std::ofstream(folder / "bad.json") << R"({"schema": 1, "kernels": [{"is": "gem", "names": ["x"]}]})";
    KernelTable table;
    table.add(test::source_folder / "configs" / "kernels.json");
    CHECK(table.use_of("gemm_sum_fp32")->kind == TaskKind::gemm);
    CHECK_FALSE(table.use_of("My_sum").has_value());
    CHECK(table.use_of("c10d::symmetric_memory::barrier_kernel(unsigned int**)")->waits);
    CHECK(table.use_of("fmha_cutlassF_bf16")->kind == TaskKind::memory_bound);
    CHECK(table.use_of("fmha_cutlassF_bf16")->attention);
    table.add(folder / "own.json");
    CHECK(table.use_of("gemm_sum_fp32")->kind == TaskKind::reduce);
    CHECK(table.use_of("My_sum")->kind == TaskKind::reduce);
    CHECK(test::error_of([&] { table.add(folder / "bad.json"); }).find("did you mean 'gemm'") !=
          std::string::npos);
}

}  // namespace overlap::test::recognise_test
