#pragma once

#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace overlap {

/// A cache of expensive values: keeps the `most` values requested last. Thread-safe. Values are copied out,
/// so they should be pointers or small.
template <class Key, class Value, class Hash = std::hash<Key>>
class RecentValues {
public:
    explicit RecentValues(std::size_t most) : most_(most) {}

    /// The value of `key`, made by `make()` if it is missing. `make` runs outside the lock; threads that need
    /// the value at the same time make one each, and all get the first finished one.
    template <class Make>
    Value get(const Key& key, Make&& make) {
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = places_.find(key); found != places_.end()) return used(found->second);
        }
        Value made = make();
        const std::lock_guard lock(mutex_);
        if (const auto found = places_.find(key); found != places_.end()) return used(found->second);
        values_.emplace_front(key, made);
        try {
            places_.emplace(key, values_.begin());
        } catch (...) {  // out of memory: as if it had not been made
            values_.pop_front();
            throw;
        }
        if (values_.size() > most_) {
            places_.erase(values_.back().first);
            values_.pop_back();
        }
        return made;
    }

private:
    using Values = std::list<std::pair<Key, Value>>;

    const Value& used(typename Values::iterator value) {
        values_.splice(values_.begin(), values_, value);
        return value->second;
    }

    std::size_t most_;
    std::mutex mutex_;
    Values values_;  ///< most recent first
    std::unordered_map<Key, typename Values::iterator, Hash> places_;
};

}  // namespace overlap
