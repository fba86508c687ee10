// Are runs that take more than there is refused before work, by estimates that hold?
#include "sim/run/budget.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "sim/core/available_memory.hpp"
#include "sim/core/environment.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::budget_test {

using Catch::Contains;

namespace {

/// A variable of the environment while it lives.
class Environment {
public:
    Environment(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
    ~Environment() { unsetenv(name_); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

private:
    const char* name_;
};

RunConfig config_of(const std::string& topology, const std::string& schedule,
                    const Json& params = Json::object()) {
    return read_run_config({{"topology", topology},
                            {"schedule", schedule},
                            {"params", params},
                            {"workload",
                             {{"collective", "all_gather"},
                              {"gemm", {{"m", 65536}, {"n", 1024}, {"k", 1024}, {"dtype", "bf16"}}}}}},
                           "x.json");
}

/// From now on the peak of this process's resident set is that of what follows.
void forget_peak() {
    std::ofstream("/proc/self/clear_refs") << 5;
}

/// Peak of this process's resident set.
double peak_bytes() {
    std::ifstream in("/proc/self/status");
    for (std::string key, rest; in >> key && std::getline(in, rest);)
        if (key == "VmHWM:") return std::stod(rest) * 1024;
    return 0;
}

}  // namespace

TEST_CASE("a run that takes more memory than there is is refused, unless told otherwise", "[budget]") {
    const Environment limit("OVERLAP_MEMORY_GB", "1");
    RunConfig config = config_of("mi300x_1024_rail", "shard_p2p");
    config.workload = {
        {"collective", "all_gather"},
        {"gemm", {{"m", 32769}, {"n", 7168}, {"k", 8192}, {"dtype", "bf16"}}}};  // one shard is longer
    CHECK_THAT(
        error_of([&] { resolved(config); }),
        Contains("simulations of 2096128 tasks or more take about") &&  // 1024 · (1023 copies + 1024 GEMMs)
            Contains("1.0 GB are available") && Contains("--allow-large"));
    config.allow_large = true;
    const RunBudget budget = budget_of(resolved(config), gigabytes(100));
    CHECK(budget.memory > gigabytes(2));
    CHECK_FALSE(budget.at_least);
    CHECK(error_of([&] { resolved(config_of("h200_4", "hetero_fused_1d")); }) == "");
    const Environment less("OVERLAP_MEMORY_GB", "0.001");
    CHECK_THAT(error_of([&] { resolved(config_of("h200_4", "hetero_fused_1d")); }),
               Contains("1 MB are available"));
}

TEST_CASE("runs that share the memory have their part of it each", "[budget]") {
    const Environment limit("OVERLAP_MEMORY_GB", "0.5");
    const RunConfig config = config_of("h200_4", "hetero_fused_1d");
    CHECK(error_of([&] { Resolver(shipped, 1).resolve(config); }) == "");
    CHECK_THAT(error_of([&] { Resolver(shipped, 100).resolve(config); }), Contains("5 MB are available"));
}

TEST_CASE("the memory of a run is no more than estimated, and no less than a third", "[budget]") {
    // Pushes by engines of unspecified order: every GPU is built and simulated.
    RunConfig config =
        config_of("gb200_72", "hetero_unfused_1d", {{"chunks", 24}, {"agent", "dma"}, {"transfer", "push"}});
    config.seeds = 1;
    const Scenario scenario = resolved(config);
    const RunBudget budget = budget_of(scenario, gigabytes(100));
    REQUIRE(budget.tasks > 200'000);
    forget_peak();
    run(scenario, {false, nullptr});
    const double peak = peak_bytes();
    CHECK(peak <= budget.memory.si());
    CHECK(peak >= budget.memory.si() / 3);
}

TEST_CASE("no more simulations are run than were estimated, and most of those", "[budget]") {
    for (const char* topology : {"mi300x_8", "h200_4"})
        for (const Json& params :
             {Json{{"transfer", "pull"}}, Json{{"transfer", "push"}}, Json{{"agent", "cu"}}})
            for (const char* schedule : {"hetero_fused_1d", "serial", "ring_chunked"}) {
                Scenario scenario = resolved(config_of(topology, schedule, params));
                std::atomic<int> simulated{0};
                scenario.simulated = [&simulated] { ++simulated; };
                run(scenario, {false, nullptr});
                INFO(topology << " " << schedule << " " << params.dump());
                CHECK(simulated <= most_simulations(scenario));
                CHECK(simulated >= most_simulations(scenario) / 2);
            }
}

TEST_CASE("numbers of the environment are checked", "[budget]") {
    const Environment bad("OVERLAP_MEMORY_GB", "lots");
    CHECK_THAT(error_of([] { available_memory(); }),
               Contains("OVERLAP_MEMORY_GB is 'lots', expected a number"));
    const Environment negative("OVERLAP_MEMORY_GB", "-1");
    CHECK_THAT(error_of([] { available_memory(); }), Contains("is '-1'"));
    const Environment given("OVERLAP_MEMORY_GB", "2.5");
    CHECK(available_memory() == gigabytes(2.5));
    CHECK(memory_text(gigabytes(2.5)) == "2.5 GB");
    CHECK(memory_text(gigabytes(0.32)) == "320 MB");
    CHECK_FALSE(number_from_environment("OVERLAP_NOT_SET", {0, 1}));
}

}  // namespace overlap::test::budget_test
