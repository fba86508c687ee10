#include "sim/core/timeline.hpp"

#include <array>
#include <catch2/catch.hpp>

namespace overlap::test::timeline_test {
namespace {

Span span(TaskKind kind, int gpu, double start_us, double end_us) {
    return {"", kind, gpu, "", microseconds(start_us), microseconds(end_us)};
}

constexpr std::array gemms{TaskKind::gemm};
constexpr std::array copies{TaskKind::copy};

}  // namespace

TEST_CASE("busy time counts what overlaps once, whatever the order") {
    const Timeline timeline({span(TaskKind::gemm, 0, 50, 60), span(TaskKind::gemm, 0, 0, 10),
                             span(TaskKind::gemm, 0, 5, 20), span(TaskKind::gemm, 0, 6, 7),
                             span(TaskKind::copy, 0, 0, 100), span(TaskKind::gemm, 1, 0, 90)});
    // 0–20 and 50–60: the span 6–7 lies inside, other kinds and GPUs do not count.
    CHECK(to_microseconds(timeline.busy(0, gemms)) == Approx(30));
    CHECK(to_microseconds(timeline.busy(0, copies)) == Approx(100));
    CHECK(timeline.busy(7, gemms) == Seconds());
    CHECK(timeline.gpus() == 2);
    CHECK(to_microseconds(timeline.end()) == Approx(100));
}

TEST_CASE("exposed communication is what no computation covers, on the GPU with most of it") {
    // GPU 0: transfers 0–40, GEMM 30–60: exposed 30. GPU 1: transfer 0–10 and
    // reduction 50–70, GEMM 5–50: 5 + 20.
    const Timeline timeline({span(TaskKind::copy, 0, 0, 40), span(TaskKind::gemm, 0, 30, 60),
                             span(TaskKind::copy, 1, 0, 10), span(TaskKind::gemm, 1, 5, 50),
                             span(TaskKind::reduce, 1, 50, 70)});
    CHECK(to_microseconds(timeline.exposed_communication()) == Approx(30));
}

TEST_CASE("packing is neither communication nor computation, memory-bound operators compute") {
    const Timeline packing({span(TaskKind::copy, 0, 0, 40), span(TaskKind::local_copy, 0, 0, 60)});
    CHECK(to_microseconds(packing.exposed_communication()) == Approx(40));
    const Timeline streaming({span(TaskKind::copy, 0, 0, 40), span(TaskKind::memory_bound, 0, 10, 60)});
    CHECK(to_microseconds(streaming.exposed_communication()) == Approx(10));
}

TEST_CASE("a timeline without spans is empty") {
    const Timeline nothing;
    CHECK(nothing.gpus() == 0);
    CHECK(nothing.end() == Seconds());
    CHECK(nothing.exposed_communication() == Seconds());
}

}  // namespace overlap::test::timeline_test
