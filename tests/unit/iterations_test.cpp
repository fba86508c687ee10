// Is one run of several that a profiler recorded found, and taken as one?
#include "sim/importers/iterations.hpp"

#include <catch2/catch.hpp>

#include "tests/test_support.hpp"

namespace overlap::test::iterations_test {
namespace {

/// Spans of one stream of a GPU, one letter each: g a GEMM of 10 us, c a collective of 5 us, f a fill of 1
/// us. A dot is 100 us of nothing.
void record(std::vector<RecordedSpan>& spans, int gpu, const std::string& work, std::int64_t start_us = 0,
            const std::string& stream = "7", int clock = 0) {
    std::int64_t now = start_us * 1000;
    for (const char letter : work) {
        const std::int64_t lasts = letter == 'g'   ? 10'000
                                   : letter == 'c' ? 5'000
                                   : letter == 'f' ? 1'000
                                                   : 100'000;
        const TaskKind kind = letter == 'g'   ? TaskKind::gemm
                              : letter == 'c' ? TaskKind::collective
                                              : TaskKind::memory_bound;
        if (letter != '.')
            spans.push_back({std::string(1, letter), kind, gpu, stream, now, now + lasts, clock});
        now += lasts;
    }
}

std::vector<double> makespans_us(const Iterations& found) {
    std::vector<double> result;
    for (const Iteration& one : found.all) result.push_back(to_microseconds(one.timeline().end()));
    return result;
}

void check_makespans(const Iterations& found, const std::vector<double>& expected) {
    const std::vector<double> seen = makespans_us(found);
    REQUIRE(seen.size() == expected.size());
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == Approx(expected[i]));
}

}  // namespace

TEST_CASE("runs are found by the GEMMs of the scenario, spans of each counted from its start") {
    std::vector<RecordedSpan> spans;
    record(spans, 0, "cgg.cgg");
    record(spans, 1, "cgg.cgg", 2);
    const Iterations found = find_iterations(spans, 2);
    CHECK_FALSE(found.ambiguous);
    CHECK(found.outside == 0);
    check_makespans(found, {27, 27});  // 5 + 2 · 10, and GPU 1 begins 2 later on the same clock
    CHECK(to_microseconds(found.all[1].starts_apart()) == Approx(2));
    check_makespans(find_iterations(spans, 4), {152});  // 2 · 25 + 100 + 2
    CHECK(found.doubt.empty());
    const Iterations fewer = find_iterations(spans, 5);  // GEMMs than a run has: nothing to cut
    check_makespans(fewer, {152});
    CHECK(fewer.doubt.find("more than 4 GEMMs") != std::string::npos);
}

TEST_CASE("without a scenario what repeats may be runs or parts of one") {
    std::vector<RecordedSpan> spans;
    record(spans, 0, "cgcg");
    record(spans, 0, "ff", 3, "8");
    const Iterations found = find_iterations(spans, std::nullopt);
    CHECK(found.ambiguous);
    CHECK(found.all.size() == 2);
    std::vector<RecordedSpan> once;
    record(once, 0, "cgfg");
    const Iterations whole = find_iterations(once, std::nullopt);
    CHECK_FALSE(whole.ambiguous);
    CHECK(whole.found_by.empty());
    CHECK(whole.all.size() == 1);
}

TEST_CASE("what comes before the first run is left out, what repeats in no stream goes by its time") {
    std::vector<RecordedSpan> spans;
    record(spans, 0, "ffcgcg");      // fills of 0-2, runs from 2 and from 17
    record(spans, 0, "c", 20, "8");  // 20-25, in the second
    const Iterations found = find_iterations(spans, 1);
    CHECK(found.outside == 2);
    REQUIRE(found.all.size() == 2);
    CHECK(found.all[0].spans.size() == 2);
    CHECK(found.all[1].spans.size() == 3);
    check_makespans(found, {15, 15});
}

TEST_CASE("clocks of several processes are not compared, one clock is") {
    std::vector<RecordedSpan> apart, together;
    record(apart, 0, "cg", 0, "7", 1);
    record(apart, 1, "cg", 1000, "7", 2);
    record(together, 0, "cg");
    record(together, 1, "cg", 1000);
    check_makespans(find_iterations(apart, 1), {15});
    check_makespans(find_iterations(together, 1), {1015});
    CHECK(to_microseconds(find_iterations(apart, 1).all[0].starts_apart()) == Approx(1000));
}

TEST_CASE("steps of the profiler go before all else, and may hold several runs") {
    std::vector<RecordedSpan> spans;
    record(spans, 0, "cgcgcg");
    for (std::size_t i = 2; i < spans.size(); ++i) spans[i].launch.step = 7;
    const Iterations found = find_iterations(spans, std::nullopt);
    CHECK_FALSE(found.ambiguous);
    CHECK(found.outside == 2);
    REQUIRE(found.all.size() == 1);
    CHECK(found.all[0].name == "ProfilerStep#7");
    CHECK(find_iterations(spans, 1).all.size() == 2);
}

TEST_CASE("a recording that the scenario does not divide is refused") {
    std::vector<RecordedSpan> odd, uneven;
    record(odd, 0, "cgcgcg");
    CHECK(error_of([&] {
              find_iterations(odd, 2);
          }).find("GPUs ran 3 GEMMs, and one run of the scenario has 2") != std::string::npos);
    record(uneven, 0, "cgcg");
    record(uneven, 1, "cgcgcg");
    CHECK(error_of([&] { find_iterations(uneven, 1); }).find("GPUs ran 2 or 3 GEMMs") != std::string::npos);
    std::vector<RecordedSpan> different;
    record(different, 0, "gcfgfc");
    record(different, 1, "gg");
    CHECK(error_of([&] { find_iterations(different, 2); }).empty());
}

TEST_CASE("steady are runs on all GPUs near the middle one") {
    std::vector<RecordedSpan> spans;
    record(spans, 0, "c.gcgcgcg");  // 115, 15, 15, 15
    Iterations found = find_iterations(spans, 1);
    CHECK(steady_iterations(found.all) == std::vector<std::size_t>{1, 2, 3});
    found.all[2].spans.front().gpu = 1;
    found.all[3].spans.front().gpu = 1;  // on two GPUs, the others on one
    CHECK(steady_iterations(found.all) == std::vector<std::size_t>{2, 3});
    const std::vector<Iteration> two{found.all[0], found.all[1]};
    CHECK(steady_iterations(two) == std::vector<std::size_t>{1});
}

}  // namespace overlap::test::iterations_test
