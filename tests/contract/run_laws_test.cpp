// Laws of whole results, over configs that are drawn: any shipped machine of one to sixteen GPUs, schedule,
// collective, agent and direction, GEMMs from a few rows to training sizes.
#include <catch2/catch.hpp>
#include <random>

#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::run_laws_test {
namespace {

/// One value of a list, or a dimension, by a generator whose numbers are the same everywhere.
class Draw {
public:
    explicit Draw(std::uint32_t seed) : bits_(seed) {}

    template <class Values>
    const auto& one_of(const Values& values) {
        return values[bits_() % std::size(values)];
    }
    /// Powers of two and what lies between them, from 64 to 32,768; one in four is odd.
    std::int64_t dimension() {
        const std::int64_t power = std::int64_t{64} << bits_() % 10;
        return power * (4 + bits_() % 4) / 4 + (bits_() % 4 == 0 ? 1 : 0);
    }

private:
    std::mt19937 bits_;
};

const std::vector<std::string> machines{
    "mi300x_1", "mi300x_8", "mi325x_8",  "mi355x_8", "mi250x_8",  "mi210_4",   "h200_2", "h200_4",
    "h200_8",   "h100_8",   "torus_4x4", "ring_8",   "t3_ring_8", "mi300x_16", "b200_8", "b300_8"};

Json drawn_config(Draw& draw) {
    static const std::vector<std::string> orders{"collective_first", "gemm_first", "independent"};
    static const std::vector<std::string> agents{"dma", "cu"}, directions{"pull", "push"},
        dtypes{"bf16", "fp16"};
    static const std::vector<int> chunks{1, 2, 4, 8, 16};
    const ScheduleEntry& schedule = draw.one_of(schedules());
    Json params = Json::object();
    const auto give = [&](const std::string& name, const Json& value) {
        if (std::find(schedule.parameters.begin(), schedule.parameters.end(), name) !=
            schedule.parameters.end())
            params[name] = value;
    };
    give("agent", draw.one_of(agents));
    give("transfer", draw.one_of(directions));
    give("chunks", draw.one_of(chunks));
    const Json gemm{{"m", draw.dimension()},
                    {"n", draw.dimension()},
                    {"k", draw.dimension()},
                    {"dtype", draw.one_of(dtypes)}};
    return {
        {"topology", draw.one_of(machines)},
        {"schedule", schedule.name},
        {"params", params},
        {"seeds", 1},
        {"workload",
         {{"collective", draw.one_of(collective_names)}, {"order", draw.one_of(orders)}, {"gemm", gemm}}}};
}

/// No part of a result is impossible, whatever its size.
void check_laws(const RunResult& result) {
    const double makespan = result.makespan.si();
    // Every event is rounded to a femtosecond.
    const double rounding = 1e-9 * makespan + 1e-15 * static_cast<double>(result.simulation.tasks);
    CHECK(std::isfinite(makespan));
    CHECK(result.makespan.si() >= result.ideal.si() - rounding);
    CHECK(result.phases.serial.si() >= result.ideal.si() - rounding);
    CHECK(result.baseline.time.si() >= result.ideal.si() - rounding);
    // The gain over that of the ideal: rounding of the makespan counts by what there is to gain.
    if (result.baseline.overlap_efficiency)
        CHECK(*result.baseline.overlap_efficiency <=
              1 + rounding / (result.baseline.time - result.ideal).si());
    const Losses& l = result.losses;
    const Seconds sum =
        l.contention + l.launch + l.packing + l.decomposition + l.pattern + l.fill_drain + l.host + l.power;
    CHECK(std::abs((sum - (result.makespan - result.ideal)).si()) <= rounding);
    CHECK(l.pattern.si() >= -rounding);
    CHECK(l.fill_drain.si() >= -rounding);
    const Utilisation& used = result.used.utilisation;
    for (const double share : {used.cu, used.hbm, used.link, used.dma}) {
        CHECK(share >= 0);
        CHECK(share <= 1 + 1e-9);
    }
}

}  // namespace

TEST_CASE("no drawn run is faster than its ideal, uses more than there is, or loses what does not add up") {
    Draw draw(1);
    Resolver resolver(shipped);
    int checked = 0, refused = 0;
    while (checked < 2000 && refused < 20'000) {
        const Json config = drawn_config(draw);
        std::optional<Scenario> scenario;
        try {
            scenario = resolver.resolve(read_run_config(config, "drawn"));
            scenario->graph();
        } catch (const UserError&) {
            ++refused;  // a schedule that does not serve the pair, or cuts it into more parts than it has
            continue;
        }
        INFO(config.dump());
        try {
            check_laws(run(*scenario, {.record = false}));
            ++checked;
        } catch (const UserError& error) {
            // A GEMM that polls for copies keeps the units that their kernels wait for.
            CHECK_THAT(error.what(), Catch::Contains("the schedule deadlocks"));
            ++refused;
        }
    }
    CHECK(checked == 2000);
}

}  // namespace overlap::test::run_laws_test
