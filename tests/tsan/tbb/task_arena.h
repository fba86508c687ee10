// What the program takes from TBB, by std::thread: ThreadSanitizer sees all of it, and would see nothing of
// how the threads of the TBB library wait for each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tbb {

/// How many threads a parallel algorithm takes: at least four, so that there is something to see.
inline std::atomic<int>& threads() {
    static std::atomic<int> count{std::max(4, static_cast<int>(std::thread::hardware_concurrency()))};
    return count;
}

class task_arena {
public:
    explicit task_arena(int count) { threads() = count; }
    template <class Work>
    void execute(Work&& work) {
        work();
    }
};

namespace this_task_arena {

template <class Work>
auto isolate(Work&& work) {
    return work();
}

}  // namespace this_task_arena

/// Runs `work` on all threads(); throws what the first of them threw.
inline void on_all_threads(const std::function<void()>& work) {
    std::exception_ptr first;
    std::mutex mutex;
    std::vector<std::thread> running;
    for (int i = 0; i < threads(); ++i)
        running.emplace_back([&] {
            try {
                work();
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!first) first = std::current_exception();
            }
        });
    for (std::thread& thread : running) thread.join();
    if (first) std::rethrow_exception(first);
}

}  // namespace tbb
