// What a simulation does next.
#include "sim/engine/event_queue.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

namespace overlap::test::event_queue_test {

TEST_CASE("an event holds its task, kind and detail") {
    const std::uint32_t most = (1U << Event::detail_bits) - 1;
    const Event event(7, UINT32_MAX, EventKind::flag, most);
    CHECK(event.date == 7);
    CHECK(event.task() == UINT32_MAX);
    CHECK(event.kind() == EventKind::flag);
    CHECK(event.detail() == most);
    // Of one date, the lower task goes first, whatever its kind.
    CHECK(Event(7, 1, EventKind::flag, most).order < Event(7, 2, EventKind::launch, 0).order);
}

// Against a map. Few dates, so that chains grow, break off, and are taken while others of their date exist; or many,
// so that not all chains are sorted.
TEST_CASE("events come by date, all of one date at once") {
    const unsigned dates = GENERATE(5U, 20U, 500U);
    std::mt19937 random(1);
    EventQueue queue(10);
    std::map<Femtoseconds, std::multiset<std::uint64_t>> expected;
    Femtoseconds now = 0;
    std::size_t taken = 0;
    for (unsigned round = 0; round < 1000; ++round) {
        for (unsigned pushes = random() % 8; pushes > 0; --pushes) {
            const Event event(now + 1 + random() % dates, random() % 100, EventKind::body, random() % 3);
            queue.push(event);
            expected[event.date].insert(event.order);
        }
        REQUIRE(queue.empty() == expected.empty());
        if (queue.empty()) continue;
        now = queue.next_date();
        REQUIRE(now == expected.begin()->first);
        std::vector<Event> events;
        queue.take_next(events);
        std::multiset<std::uint64_t> orders;
        for (const Event& event : events) {
            REQUIRE(event.date == now);
            orders.insert(event.order);
        }
        REQUIRE(orders == expected.begin()->second);
        expected.erase(expected.begin());
        taken += events.size();
    }
    CHECK(taken > 1000);
}

TEST_CASE("event queue: void events that have piled up are forgotten, all others stay") {
    EventQueue queue(2);
    const auto is_void = [](const Event& event) { return event.detail() < 8; };
    for (unsigned version = 0; version < 4; ++version)
        queue.push({10 + version, 1, EventKind::body, version});
    queue.tidy(is_void);  // four events of two tasks: not worth a look
    CHECK(queue.next_date() == 10);
    for (unsigned version = 4; version < 10; ++version)
        queue.push({10 + version, 1, EventKind::body, version});
    queue.push({19, 0, EventKind::body, 8});
    queue.tidy(is_void);
    CHECK(queue.next_date() == 18);
    std::vector<Event> events;
    queue.take_next(events);
    queue.take_next(events);
    CHECK(events.size() == 3);
    CHECK(queue.empty());
}

}  // namespace overlap::test::event_queue_test
