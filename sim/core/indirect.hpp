#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace overlap {

/// None or a T, which lies elsewhere and is copied with its owner: a header that holds one only declares T, so that a
/// change of T rebuilds the sources that use T and no others. T has to be complete where one is made.
template <class T>
class Indirect {
public:
    Indirect() { emplace(); }
    Indirect(std::nullptr_t) {}
    Indirect(const Indirect& from) : value_(from ? from.copy_(*from) : nullptr), copy_(from.copy_) {}
    Indirect(Indirect&&) noexcept = default;
    Indirect& operator=(Indirect from) noexcept {
        std::swap(value_, from.value_);
        std::swap(copy_, from.copy_);
        return *this;
    }
    ~Indirect() = default;

    T& emplace(T value = {}) {
        copy_ = [](const T& from) { return std::make_shared<T>(from); };
        value_ = std::make_shared<T>(std::move(value));
        return *value_;
    }

    explicit operator bool() const { return value_ != nullptr; }
    T& operator*() { return *value_; }
    const T& operator*() const { return *value_; }
    T* operator->() { return value_.get(); }
    const T* operator->() const { return value_.get(); }

private:
    std::shared_ptr<T> value_;
    std::shared_ptr<T> (*copy_)(const T&) = nullptr;
};

}  // namespace overlap
