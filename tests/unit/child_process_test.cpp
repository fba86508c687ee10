// Is a child process that does not end killed, and does the error say what it was doing?
#include "sim/engine/child_process.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

namespace overlap::test::child_process_test {

using Clock = ChildProcess::Clock;

TEST_CASE("what a child writes is read, and how it ended is known", "[child]") {
    ChildProcess child([](ChildProcess::Writer& out) { out.write("abc", 3); }, Clock::time_point::max());
    char text[4] = {};
    child.read(text, 3);
    child.finish();
    CHECK(std::string(text) == "abc");
    ChildProcess dies([](ChildProcess::Writer&) { throw std::runtime_error("no"); },
                      Clock::time_point::max());
    CHECK_THROWS_AS(dies.read(text, 1), ChildProcess::Failure);
}

TEST_CASE("a child that is not done by its deadline is killed", "[child]") {
    const SharedMemory shared(sizeof(std::atomic<int>));
    auto& reached = *new (shared.get()) std::atomic<int>(0);
    const SharedMemory shared_id(sizeof(std::atomic<pid_t>));
    auto& id = *new (shared_id.get()) std::atomic<pid_t>(0);
    const auto begun = Clock::now();
    ChildProcess child(
        [&](ChildProcess::Writer&) {
            id = getpid();
            reached = 7;
            for (;;) pause();
        },
        begun + std::chrono::milliseconds(300));
    char byte = 0;
    CHECK_THROWS_AS(child.read(&byte, 1), ChildProcess::TimedOut);
    CHECK(Clock::now() - begun < std::chrono::seconds(20));
    CHECK(reached == 7);
    CHECK(kill(id, 0) != 0);  // there is no such process any more
}

}  // namespace overlap::test::child_process_test
