// Copies of an H200 node against our own measurements (traces/h200_4/microbench): fitted anew here, held out
// by direction and pattern, and compared with the calibration that is shipped.
#include <catch2/catch.hpp>
#include <iostream>

#include "sim/calibration/device_problems.hpp"
#include "tests/test_support.hpp"

using namespace overlap;
using namespace overlap::test;

namespace {

struct Target {
    std::string name;
    double mean, p90;  ///< highest held-out errors that are accepted
    std::size_t count;
};

const ErrorClass& find(const std::vector<ErrorClass>& classes, const std::string& name) {
    for (const ErrorClass& one : classes)
        if (one.name == name) return one;
    FAIL("no class " << name);
    throw std::logic_error(name);
}

void require_targets(const std::vector<ErrorClass>& classes, const std::vector<Target>& targets) {
    for (const Target& target : targets) {
        const ErrorClass& one = find(classes, target.name);
        INFO(one.name << ": held out mean " << one.held_out.mean << ", p90 " << one.held_out.p90 << " of "
                      << one.count);
        CHECK(one.held_out.mean <= target.mean);
        CHECK(one.held_out.p90 <= target.p90);
        CHECK(one.held_out.mean > 0);
        CHECK(one.count == target.count);
    }
}

}  // namespace

// One test, because each would fit anew in a process of its own.
TEST_CASE("H200 copies: held-out errors, known gaps, and the shipped groups regenerated") {
    const auto calibrated =
        calibrate_device(shipped.calibration("h200"), source_folder / "traces/h200_4/microbench",
                         "traces/h200_4/microbench", shipped);
    REQUIRE_FALSE(calibrated.empty());
    REQUIRE(calibrated.front().problem.name == "DMA copies");
    const std::vector<ErrorClass> dma = calibrated.front().classes();
    std::cout << error_table(dma);
    // Issue 4 asks for 5 and 12 % from 1 MiB, 12 and 25 % below; what was reached is asserted, rounded up.
    require_targets(dma, {{"DMA copy >= 1 MiB", 0.045, 0.12, 266},
                          {"DMA copy < 1 MiB", 0.11, 0.23, 88},
                          {"  one copy >= 16 MiB", 0.035, 0.07, 91},
                          {"  pull all_with_one", 0.02, 0.03, 8},
                          {"  pull rotation", 0.055, 0.14, 20}});
    // Known gaps: chains whose end nobody awaits alone are shorter; chunks of several lanes block each other
    // more than here; medians of pushes in no certain order.
    CHECK(find(dma, "  chained chunks").held_out.mean > 0.05);
    CHECK(find(dma, "  one copy 1-4 MiB").held_out.p90 > 0.12);
    CHECK(find(dma, "  pull all_at_once").held_out.p90 > 0.25);
    CHECK(find(dma, "  push all_at_once").held_out.mean > 0.05);
    // Digit by digit, and nothing else.
    const Json file = read_json_file(source_folder / "configs/calibrations/h200.json");
    Json groups = Json::object();
    for (const std::string& group : calibrated_groups)
        if (file.contains(group)) groups[group] = file.at(group);
    Json fitted = device_groups(calibrated);
    CHECK(fitted.size() == groups.size());
    for (const auto& item : fitted.items()) CHECK(item.value().dump(2) == groups.at(item.key()).dump(2));
}
