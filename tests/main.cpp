// Simulations run in forked processes, which would inherit Catch's signal handlers and report there.
#define CATCH_CONFIG_NO_POSIX_SIGNALS
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <iostream>
#include <map>

#include "tests/skip.hpp"

namespace {

constexpr int skipped_code = 77;  // SKIP_RETURN_CODE in tests/CMakeLists.txt

std::map<std::string, std::size_t> skipped;  // test cases by reason
std::size_t test_cases = 0;

struct Counter : Catch::TestEventListenerBase {
    using TestEventListenerBase::TestEventListenerBase;
    void testRunEnded(const Catch::TestRunStats& stats) override {
        test_cases = stats.totals.testCases.total();
    }
};
CATCH_REGISTER_LISTENER(Counter)

}  // namespace

void overlap::test::skip_test(const std::string& why) {
    ++skipped[why];
}

int main(int argc, char* argv[]) {
    // Catch returns the number of failures, which may be 77, too.
    if (Catch::Session().run(argc, argv) != 0) return 1;
    std::size_t count = 0;
    for (const auto& [why, cases] : skipped) {
        std::cout << "skipped: " << cases << " of " << test_cases << ": " << why << '\n';
        count += cases;
    }
    return count > 0 && count == test_cases ? skipped_code : 0;
}
