#pragma once

#include <thread>
#include <utility>
#include <vector>

namespace tbb {

class task_group {
public:
    template <class Work>
    void run(Work work) {
        running_.emplace_back(std::move(work));
    }
    void wait() {
        for (std::thread& thread : running_) thread.join();
        running_.clear();
    }

private:
    std::vector<std::thread> running_;
};

}  // namespace tbb
