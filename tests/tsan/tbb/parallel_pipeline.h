#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>

#include "task_arena.h"

namespace tbb {

enum class filter_mode { serial_in_order, parallel };

class flow_control {
public:
    void stop() { stopped_ = true; }
    bool stopped() const { return stopped_; }

private:
    bool stopped_ = false;
};

template <class In, class Out>
struct filter {
    std::function<Out(In)> call;
};
template <class Out>
struct filter<void, Out> {
    std::function<Out(flow_control&)> call;
};

template <class In, class Out, class Call>
filter<In, Out> make_filter(filter_mode, Call&& call) {
    return {call};
}

template <class First, class Second, class Third>
struct chain {
    First first;
    Second second;
    Third third;
};

template <class A, class B>
auto operator&(filter<void, A> first, filter<A, B> second) {
    return chain<filter<void, A>, filter<A, B>, int>{first, second, 0};
}
template <class A, class B>
auto operator&(chain<filter<void, A>, filter<A, B>, int> two, filter<B, void> third) {
    return chain<filter<void, A>, filter<A, B>, filter<B, void>>{two.first, two.second, third};
}

/// A source in order, work in parallel, a sink in order: the one shape that the program has.
template <class A, class B>
void parallel_pipeline(std::size_t most, chain<filter<void, A>, filter<A, B>, filter<B, void>> filters) {
    std::mutex mutex;
    std::condition_variable room;
    flow_control control;
    std::size_t taken = 0, written = 0;
    std::map<std::size_t, B> done;  // by number; the first waits for those before it
    on_all_threads([&] {
        try {
            for (;;) {
                std::unique_lock lock(mutex);
                room.wait(lock, [&] { return control.stopped() || taken - written < most; });
                if (control.stopped()) return;
                const A item = filters.first.call(control);
                if (control.stopped()) return room.notify_all();
                const std::size_t number = taken++;
                lock.unlock();
                B result = filters.second.call(item);
                lock.lock();
                done.emplace(number, std::move(result));
                for (auto next = done.begin(); next != done.end() && next->first == written;
                     next = done.begin()) {
                    filters.third.call(std::move(next->second));
                    done.erase(next);
                    ++written;
                }
                room.notify_all();
            }
        } catch (...) {
            const std::lock_guard lock(mutex);
            control.stop();
            room.notify_all();
            throw;
        }
    });
}

}  // namespace tbb
