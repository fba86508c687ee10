// What plots share: looks that differ, and ticks whose labels have room.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "sim/report/gnuplot_parts.hpp"
#include "sim/report/ticks.hpp"

namespace overlap::test::looks_test {

TEST_CASE("the first 40 series differ in colour and shape, and as bars in colour and pattern") {
    std::set<std::pair<std::string, std::size_t>> marks, bars;
    std::set<std::string> points, fills;
    for (std::size_t series = 0; series < 40; ++series) {
        const Look look = look_of(series);
        marks.insert({look.colour, look.shape});
        bars.insert({look.colour, look.pattern});
        points.insert(gnuplot::points_style(look));
        fills.insert(gnuplot::fill_style(look));
        const Look next = look_of(series + 1);
        CHECK(look.colour != next.colour);
        CHECK(look.shape != next.shape);
    }
    for (const std::size_t count : {marks.size(), bars.size(), points.size(), fills.size()})
        CHECK(count == 40);
}

TEST_CASE("labels of a logarithmic axis have room, however long it is") {
    CHECK(log_ticks(10, 100, 0.05) == std::vector<double>{10, 15, 20, 30, 50, 70, 100});
    CHECK(log_ticks(10, 100, 0.2) == std::vector<double>{10, 20, 50, 100});  // 15 / 10 is 0.18 of a decade
    CHECK(log_ticks(10, 100, 0.4) == std::vector<double>{10, 30, 100});
    CHECK(log_ticks(10, 100, 0.8) == std::vector<double>{10, 100});
    CHECK(log_ticks(1, 1e6, 0.2) == std::vector<double>{1, 100, 1e4, 1e6});
    CHECK(log_ticks(101, 104, 0.1) == std::vector<double>{101, 102, 103, 104});
    for (const double decades : {0.1, 0.5, 1.0, 3.0, 7.0, 20.0})
        for (const double gap : {0.02, 0.05, 0.1, 0.2}) {
            const std::vector<double> ticks = log_ticks(3, 3 * std::pow(10, decades), gap);
            INFO(decades << " decades, gap " << gap);
            CHECK(ticks.size() >= 2);
            if (decades < 0.3) continue;  // a short axis has linear ticks
            for (std::size_t i = 1; i < ticks.size(); ++i)
                CHECK(std::log10(ticks[i] / ticks[i - 1]) >= gap * decades * (1 - 1e-9));
        }
}

TEST_CASE("a linear axis has at most the steps that it has room for") {
    CHECK(linear_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
    CHECK(linear_ticks(0, 11, 5) == std::vector<double>{0, 5, 10});
    CHECK(linear_ticks(-3, 7, 2) == std::vector<double>{0, 5});
    CHECK(linear_ticks(0, 56, 8) == std::vector<double>{0, 10, 20, 30, 40, 50});
}

TEST_CASE("a long title is broken into lines that fit") {
    CHECK(gnuplot::broken("one two three", 9 * gnuplot::letter) == "'one two'.\"\\n\".'three'");
    CHECK(gnuplot::line_count("one two three", 9 * gnuplot::letter) == 2);
    CHECK(gnuplot::broken("", 100) == "''");
}

}  // namespace overlap::test::looks_test
