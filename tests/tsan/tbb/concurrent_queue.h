#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

namespace tbb {

template <class Value>
class concurrent_bounded_queue {
public:
    void push(Value value) {
        const std::lock_guard lock(mutex_);
        values_.push_back(std::move(value));
        more_.notify_one();
    }
    void pop(Value& value) {
        std::unique_lock lock(mutex_);
        more_.wait(lock, [&] { return !values_.empty(); });
        take(value);
    }
    bool try_pop(Value& value) {
        const std::lock_guard lock(mutex_);
        if (values_.empty()) return false;
        take(value);
        return true;
    }

private:
    void take(Value& value) {
        value = std::move(values_.front());
        values_.pop_front();
    }

    std::mutex mutex_;
    std::condition_variable more_;
    std::deque<Value> values_;
};

template <class Value>
using concurrent_queue = concurrent_bounded_queue<Value>;

}  // namespace tbb
