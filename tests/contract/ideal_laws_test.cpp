// The law of "ideal": no order of the operators of a list, and no schedule that cuts their pairs, beats it.
#include <catch2/catch.hpp>
#include <filesystem>

#include "sim/run/run.hpp"
#include "tests/contract/random_list.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::ideal_laws_test {
namespace {

struct Results {
    Seconds fastest{1e300}, highest_ideal;
};

void add(const Json& config, Results& results) {
    const RunResult result = run(resolved(read_run_config(config, "test")), {.record = false});
    results.fastest = std::min({results.fastest, result.makespan, result.phases.serial});
    results.highest_ideal = std::max(results.highest_ideal, result.ideal);
    const Losses& l = result.losses;
    CHECK(l.pattern.si() >= -1e-9 * result.makespan.si());
    CHECK(l.fill_drain.si() >= -1e-9 * result.makespan.si());
    CHECK(to_microseconds(l.contention + l.launch + l.packing + l.decomposition + l.pattern + l.fill_drain) ==
          Approx(to_microseconds(result.makespan - result.ideal)).margin(1e-6));
}

}  // namespace

TEST_CASE("no order of a drawn list beats the ideal of any other order") {
    const std::vector<std::string> machines{"h200_8", "mi300x_8", "h100_8"};
    for (unsigned seed = 0; seed < 60; ++seed) {
        RandomList draw(seed);
        Json operators = draw.operators(seed % 2 == 1);
        Results results;
        for (int order = 0; order < 4; ++order) {
            for (const auto& [schedule, list_order] :
                 {std::pair{"serial", "program"}, std::pair{"concurrent", "program"},
                  std::pair{"concurrent", "data"}})
                add({{"topology", machines[seed % machines.size()]},
                     {"schedule", schedule},
                     {"workload", {{"order", list_order}, {"operators", operators}}}},
                    results);
            operators = draw.reordered(operators);
        }
        INFO("seed " << seed);
        CHECK(results.fastest.si() >= results.highest_ideal.si() * (1 - 1e-9));
    }
}

TEST_CASE("no schedule of a shipped list beats the ideal that whole operators have") {
    int lists = 0;
    for (const auto& file : std::filesystem::directory_iterator(shipped.folder("workloads"))) {
        const std::string name = file.path().stem().string();
        if (read_workload(read_config_file(file.path(), "workload").view()).pair() != nullptr) continue;
        std::string machine;
        for (const char* one : {"h200_8", "mi210_4", "mi100_1"}) {
            const Json config{{"topology", one}, {"schedule", "serial"}, {"workload", name}};
            if (machine.empty() && error_of([&] { run(resolved(read_run_config(config, "test"))); }) == "")
                machine = one;
        }
        Results results;
        int cases = 0;
        for (const ScheduleEntry& entry : schedules()) {
            const Json config{{"topology", machine}, {"schedule", entry.name}, {"workload", name}};
            if (error_of([&] { resolved(read_run_config(config, "test")); }) != "") continue;
            add(config, results);
            ++cases;
        }
        INFO(name << " on " << machine);
        CHECK(cases >= 1);
        CHECK(results.fastest.si() >= results.highest_ideal.si() * (1 - 1e-9));
        ++lists;
    }
    CHECK(lists == 9);
}

}  // namespace overlap::test::ideal_laws_test
