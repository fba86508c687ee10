#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "sim/core/task_graph.hpp"

namespace overlap {

/// Time in whole femtoseconds, so that sums do not drift and equal instants compare equal. A date is rounded to
/// 1 fs, which is 1e-8 of the shortest latency that matters in a config (0.1 µs).
using Femtoseconds = std::int64_t;

inline constexpr double femtoseconds_per_second = 1e15;
/// Simulated time ends here, after 2.56 hours. A change of rate may still move an event of this date forward; an
/// event that happens at this date ends the simulation with an error.
inline constexpr Femtoseconds end_of_time = std::numeric_limits<Femtoseconds>::max();
inline Seconds to_seconds(Femtoseconds time) {
    return Seconds(static_cast<double>(time) / femtoseconds_per_second);
}
/// end_of_time for every later time, infinity included. Contract: `time` is not negative.
inline Femtoseconds to_femtoseconds(Seconds time) {
    const double rounded = time.si() * femtoseconds_per_second + 0.5;
    return rounded < static_cast<double>(end_of_time) ? static_cast<Femtoseconds>(rounded) : end_of_time;
}
/// `delay` after `now`, or end_of_time where that is earlier.
inline Femtoseconds date_after(Femtoseconds now, Femtoseconds delay) {
    return delay < end_of_time - now ? now + delay : end_of_time;
}

enum class EventKind : std::uint8_t {
    launch,
    setup,
    late_ranks,
    body,
    completion,
    handoff,
    release,
    flag,
    event
};

/// The end of a phase of a task, in 16 bytes.
struct Event {
    Femtoseconds date = 0;
    std::uint64_t order = 0;  ///< of the events of one date: task, kind, detail

    static constexpr unsigned detail_bits = 28, task_shift = 32;
    Event() = default;
    Event(Femtoseconds date, TaskId task, EventKind kind, std::size_t detail)
        : date(date),
          order(std::uint64_t(task) << task_shift | std::uint64_t(kind) << detail_bits | detail) {}

    TaskId task() const { return order >> task_shift; }
    EventKind kind() const { return static_cast<EventKind>(order >> detail_bits & 0xfU); }
    /// body: version of the body, other versions are void; handoff: its kind; flag: its stop.
    std::uint32_t detail() const { return static_cast<std::uint32_t>(order & ((1U << detail_bits) - 1)); }
};

/// Events by date. Symmetric GPUs have equal events at the same instant, so events of one date that are pushed one
/// after another form a chain, and a chain is one entry of the queue (8 GPUs with 8 chunks: 327 entries for
/// 1744 events). The next few chains are sorted, because that is quicker than a heap of a dozen; the others are a heap.
class EventQueue {
public:
    explicit EventQueue(std::size_t tasks) : most_(2 * tasks) { links_.reserve(most_); }

    bool empty() const { return near_.empty(); }
    Femtoseconds next_date() const { return near_.back().date; }

    /// Contract: the date of `event` is later than all dates that were taken.
    void push(Event event) {
        const std::uint32_t link = add_link(event);
        if (event.date == last_date_) {
            links_[last_].next = link;
        } else {
            add_chain({event.date, link});
            last_date_ = event.date;
        }
        last_ = link;
    }

    /// Where events have piled up, forgets those that are void, so that each push and take stays quick.
    template <class IsVoid>
    void tidy(IsVoid&& is_void) {
        if (size_ <= most_) return;
        std::vector<Event> kept;
        for (const std::vector<Chain>* chains : {&near_, &far_})
            for (const Chain& chain : *chains)
                for (std::uint32_t link = chain.first; link != none; link = links_[link].next)
                    if (!is_void(links_[link].event)) kept.push_back(links_[link].event);
        most_ = std::max(most_, 2 * kept.size());
        links_.clear();
        near_.clear();
        far_.clear();
        free_ = none;
        last_date_ = 0;
        size_ = 0;
        for (const Event& event : kept) push(event);
    }

    /// Appends all events of the next date, in no particular order.
    void take_next(std::vector<Event>& events) {
        const Femtoseconds date = next_date();
        if (date == last_date_) last_date_ = 0;
        do {
            for (std::uint32_t link = near_.back().first; link != none;) {
                events.push_back(links_[link].event);
                --size_;
                const std::uint32_t next = std::exchange(links_[link].next, free_);
                free_ = std::exchange(link, next);
            }
            near_.pop_back();
            if (near_.empty()) refill();
        } while (!empty() && next_date() == date);
    }

private:
    static constexpr std::uint32_t none = UINT32_MAX;
    static constexpr std::size_t most_near = 32;
    struct Link {
        Event event;
        std::uint32_t next = none;
    };
    struct Chain {
        Femtoseconds date;
        std::uint32_t first;
        friend bool operator>(const Chain& a, const Chain& b) { return a.date > b.date; }
    };

    std::uint32_t add_link(Event event) {
        ++size_;
        if (free_ == none) {
            links_.push_back({event});
            return static_cast<std::uint32_t>(links_.size() - 1);
        }
        const std::uint32_t link = free_;
        free_ = links_[link].next;
        links_[link].event = event;
        links_[link].next = none;
        return link;
    }

    void add_chain(Chain chain) {
        if (near_.size() == most_near) {
            const auto half = near_.begin() + most_near / 2;
            for (auto latest = near_.begin(); latest != half; ++latest) add_far(*latest);
            near_.erase(near_.begin(), half);
        }
        if (!far_.empty() && chain > far_.front()) return add_far(chain);
        std::size_t place = near_.size();
        for (near_.push_back(chain); place > 0 && chain > near_[place - 1]; --place)
            near_[place] = near_[place - 1];
        near_[place] = chain;
    }

    void add_far(Chain chain) {
        far_.push_back(chain);
        std::push_heap(far_.begin(), far_.end(), std::greater<>());
    }

    void refill() {
        const std::size_t count = std::min(far_.size(), most_near / 2);
        near_.resize(count);
        for (std::size_t place = count; place > 0; --place) {
            near_[place - 1] = far_.front();
            std::pop_heap(far_.begin(), far_.end(), std::greater<>());
            far_.pop_back();
        }
    }

    std::vector<Chain> near_;  ///< latest first; none is later than one of `far_`; empty only if `far_` is
    std::vector<Chain> far_;   ///< a heap, earliest first
    std::vector<Link> links_;
    std::size_t size_ = 0;        ///< number of events
    std::size_t most_;            ///< with more events tidy() looks for void ones
    std::uint32_t free_ = none;   ///< chain of unused links
    std::uint32_t last_ = none;   ///< link pushed last
    Femtoseconds last_date_ = 0;  ///< its date; 0 (no event has it) once its chain was taken
};

}  // namespace overlap
