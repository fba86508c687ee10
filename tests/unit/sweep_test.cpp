// Do constraints mean what they say, and does the progress line count right?
#include <catch2/catch.hpp>

#include <sstream>
#include <thread>

#include "sim/core/formula.hpp"
#include "sim/sweep/progress_line.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::sweep_test {
namespace {

bool holds(const std::string& expression) {
    const Json values{{"gemm.m", 4096},  {"gpus", 8},    {"chunks", 4},        {"agent", "cu"},
                      {"scatter", true}, {"ratio", 2.5}, {"order", "rotation"}};
    std::vector<std::string> names;
    for (const auto& [name, value] : values.items()) names.push_back(name);
    return formulas_at("sweep.json: /where", {expression}, names).front().holds(values);
}

}  // namespace

TEST_CASE("a logical operator without an operand is refused", "[sweep]") {
    for (const char* wrong : {"scatter or or !scatter", "scatter and and scatter", "or scatter", "scatter &&",
                              "(scatter ||) && scatter", "max(gpus, or)", "! < 1"})
        CHECK_THAT(test::error_of([&] { holds(wrong); }), Catch::Contains("lacks an operand"));
    for (const char* wrong : {"scatter andand scatter", "gpus == 3or scatter", "scatter orscatter"})
        CHECK_THAT(test::error_of([&] { holds(wrong); }), Catch::Contains("there is no '"));
    CHECK_THAT(test::error_of([&] { holds("(gpus)!< 1"); }), Catch::Contains("! comes after a value"));
    CHECK_THAT(test::error_of([&] { holds("(gpus 45* chunks) == 0"); }),
               Catch::Contains("no operator before '45'"));
    CHECK(holds("gpus != 3 and !(gpus != 8)"));
    CHECK(holds("ratio < 1e3 and gpus > 0x7"));
    CHECK(holds("order == \"rotation\" and (gpus > 3 or order == \"\")"));  // no "or" and "der"
    CHECK_FALSE(holds("agent == \"and or\" && !(!scatter) or gpus < 3"));
}

TEST_CASE("constraints compute with numbers, texts and truth values", "[sweep]") {
    CHECK(holds("gemm.m % (gpus * chunks) == 0"));  // 4096 = 128 * 32
    CHECK_FALSE(holds("gemm.m % 24 == 0"));         // 4096 = 170 * 24 + 16
    CHECK(holds("gemm.m % 24 == 16"));
    CHECK(holds("gemm.m / gpus / chunks == 128"));
    CHECK(holds("agent == \"cu\" && scatter"));
    CHECK(holds("agent != \"cu\" || ratio * 2 == 5"));
    CHECK_FALSE(holds("!(chunks > 2)"));
    CHECK(holds("(chunks > 2) ? ratio < 3 : false"));
    CHECK_FALSE(holds("gemm.m % 0 == 0"));  // no number
    CHECK_FALSE(holds("agent == gpus"));    // text and a number
    CHECK(holds("-2 ^ 2 ^ 1 == -4 and 2e-1 * 10 == 2"));
    CHECK(holds("min(3, chunks, gpus) == 3 && max(log2(gpus), 2) == 3 && abs(-1.5) == 1.5"));
    CHECK(holds("order > agent"));  // by letters
}

TEST_CASE("a constraint without a truth value is refused with its text", "[sweep]") {
    CHECK_THROWS_WITH(holds("chnks > 2"), Catch::Contains("/where/0: is 'chnks > 2': there is no 'chnks'") &&
                                              Catch::Contains("'chunks'"));
    CHECK_THROWS_WITH(holds("chunks + 2"), Catch::Contains("gives 6, expected a comparison"));
    CHECK_THROWS_WITH(holds("chunks = 4"), Catch::Contains("expected a comparison"));
    CHECK_THROWS_WITH(holds("agent > 3"), Catch::Contains("/where/0"));
    CHECK_THROWS_WITH(holds("chunks >"), Catch::Contains("/where/0"));
    CHECK_THROWS_WITH(holds(""), Catch::Contains("/where/0"));
}

TEST_CASE("times are shown as people say them", "[sweep]") {
    CHECK(duration_text(7.4) == "7 s");
    CHECK(duration_text(59.6) == "1:00");
    CHECK(duration_text(187) == "3:07");
    CHECK(duration_text(7387) == "2:03:07");
}

TEST_CASE("progress says how much is done, how fast, and what is left", "[sweep]") {
    std::ostringstream out;
    ProgressLine line(out, true, 100, 1100);
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    line.show(600, "580 points, 3 failed");
    // 500 steps in at least 0.25 s; the same again is left.
    CHECK_THAT(out.str(), Catch::Contains("600 of 1100  580 points, 3 failed") && Catch::Contains("/s  ") &&
                              Catch::EndsWith(" s left") && Catch::Contains("55 %"));
    out.str("");
    line.show(601, "581 points");  // too soon to be drawn
    CHECK(out.str().empty());
    ProgressLine(out, false, 0, 10).show(5, "points");
    CHECK(out.str().empty());
}

}  // namespace overlap::test::sweep_test
