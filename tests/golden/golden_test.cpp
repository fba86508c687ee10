// Did any prediction change? Four numbers a case, approved by a person (scripts/approve).
#include <catch2/catch.hpp>

#include "sim/core/output_file.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

using namespace overlap;

namespace {

const std::filesystem::path folder = std::filesystem::path(OVERLAP_SOURCE_DIR) / "tests" / "golden";
const ConfigFolder configs(std::filesystem::path(OVERLAP_SOURCE_DIR) / "configs");

Json numbers_of(const RunResult& result) {
    return {{"makespan_us", to_microseconds(result.makespan)},
            {"serial_us", to_microseconds(result.phases.serial)},
            {"exposed_comm_us", to_microseconds(result.phases.exposed_comm)},
            {"tasks", result.simulation.tasks}};
}

}  // namespace

TEST_CASE("predictions are the approved ones") {
    const Json cases = read_json_file(folder / "cases.json");
    const Json approved = read_json_file(folder / "approved.json");
    Json now = Json::object();
    for (const auto& item : cases.items())
        now[item.key()] =
            numbers_of(run(resolve(read_run_config(item.value(), "tests/golden/cases.json"), configs)));
    write_file_atomically("golden_now.json", now.dump(2) + "\n");

    CHECK(approved.size() == now.size());
    REQUIRE(!now.empty());
    for (const auto& item : now.items()) {
        INFO(item.key() << " (after a look at the difference: scripts/approve)");
        REQUIRE(approved.contains(item.key()));
        for (const auto& number : item.value().items()) {
            INFO(number.key());
            // A millionth of a nanosecond in a millisecond: rounding of another
            // compiler, not another prediction.
            CHECK(number.value().get<double>() ==
                  Approx(approved[item.key()][number.key()].get<double>()).epsilon(1e-9).margin(1e-6));
        }
    }
}
