// Every allocation of a simulation fails once: either std::bad_alloc comes out and nothing is damaged, or the
// result is whole. JSON is left out: its destructors allocate, which ends the program
// (tests/cli/faults_test.py).
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "sim/core/recent_values.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/test_support.hpp"

namespace {

/// Allocations until one fails; negative where none does.
std::atomic<long> left{-1};

}  // namespace

// Not inlined, or GCC 12 warns of free() for what operator new returned.
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (left.load(std::memory_order_relaxed) >= 0 && left.fetch_sub(1) == 0) throw std::bad_alloc();
    if (void* const memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

using namespace overlap;
using namespace overlap::test;

namespace {

/// Calls `work` again and again, with the 1st, 2nd, … allocation failing, until it comes to an end without;
/// returns how often one failed. Whatever comes out of `work` must be `expected`.
template <class Work, class Result>
long at_every_allocation(const Result& expected, const Work& work) {
    REQUIRE(work() == expected);
    for (long number = 0;; ++number) {
        Result result = expected;
        left = number;
        try {
            result = work();
        } catch (const std::bad_alloc&) {
        }
        const bool failed = left.exchange(-1) < 0;
        if (!failed || number % 100 == 0 || result != expected) {
            INFO("allocation " << number);
            REQUIRE(result == expected);
            REQUIRE(work() == expected);
        }
        if (!failed) return number;
    }
}

}  // namespace

TEST_CASE("a simulation in which an allocation fails ends with it, and harms none that follows") {
    RunConfig config;
    config.topology = "h200_2";
    config.seeds = 2;
    for (const char* schedule : {"serial", "ring_chunked"}) {
        config.schedule = schedule;
        const Scenario scenario = resolve(config, shipped);
        const auto work = [&] {
            const Prediction made = predict(scenario);
            return std::array{made.makespan, made.p10, made.p90, made.timeline.end()};
        };
        CHECK(at_every_allocation(work(), work) > 100);
    }
}

TEST_CASE("recent values stay what they are where there was no memory to keep one") {
    RecentValues<std::string, int> values(3);
    const auto work = [&] {
        int sum = 0;
        for (const int i : {1, 2, 3, 4, 1, 5})
            sum = 10 * sum + values.get(std::string(40, static_cast<char>('a' + i)), [&] { return i; });
        return sum;
    };
    CHECK(at_every_allocation(123415, work) > 10);
}
