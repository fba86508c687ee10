#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace tbb {

template <class Value>
class enumerable_thread_specific {
public:
    explicit enumerable_thread_specific(std::function<Value()> make) : make_(std::move(make)) {}

    Value& local() {
        const std::lock_guard lock(mutex_);
        std::unique_ptr<Value>& own = values_[std::this_thread::get_id()];
        if (!own) own.reset(new Value(make_()));
        return *own;
    }

private:
    std::function<Value()> make_;
    std::mutex mutex_;
    std::map<std::thread::id, std::unique_ptr<Value>> values_;
};

}  // namespace tbb
