#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "sim/core/errors.hpp"

namespace overlap {

/// A whole number, such as a size of a model, whose products and sums throw UserError instead of overflowing.
class Whole {
public:
    constexpr Whole() = default;
    template <std::integral Number>
    constexpr Whole(Number value) : value_(static_cast<std::int64_t>(value)) {}
    constexpr operator std::int64_t() const { return value_; }

    friend constexpr Whole operator*(Whole a, Whole b) {
        std::int64_t result = 0;
        if (__builtin_mul_overflow(a.value_, b.value_, &result)) fail(a, "times", b);
        return result;
    }
    friend constexpr Whole operator+(Whole a, Whole b) {
        std::int64_t result = 0;
        if (__builtin_add_overflow(a.value_, b.value_, &result)) fail(a, "plus", b);
        return result;
    }
    friend constexpr Whole operator-(Whole a, Whole b) {
        std::int64_t result = 0;
        if (__builtin_sub_overflow(a.value_, b.value_, &result)) fail(a, "minus", b);
        return result;
    }
    friend constexpr Whole operator/(Whole a, Whole b) { return a.value_ / b.value_; }
    Whole& operator++() { return *this = *this + Whole(1); }

// With a plain integer, which would convert the Whole to one.
#define OVERLAP_WHOLE_OPERATOR(op)                          \
    template <std::integral Number>                         \
    friend constexpr Whole operator op(Whole a, Number b) { \
        return a op Whole(b);                               \
    }                                                       \
    template <std::integral Number>                         \
    friend constexpr Whole operator op(Number a, Whole b) { \
        return Whole(a) op b;                               \
    }
    OVERLAP_WHOLE_OPERATOR(*)
    OVERLAP_WHOLE_OPERATOR(+)
    OVERLAP_WHOLE_OPERATOR(-)
    OVERLAP_WHOLE_OPERATOR(/)
#undef OVERLAP_WHOLE_OPERATOR

private:
    [[noreturn]] static void fail(Whole a, const char* operation, Whole b) {
        throw UserError("sizes are too large: " + std::to_string(a.value_) + " " + operation + " " +
                        std::to_string(b.value_) + " is beyond 9.2e18");
    }
    std::int64_t value_ = 0;
};

/// `value` as a smaller type. Throws UserError if it doesn't fit.
template <std::integral Number>
Number narrowed(std::int64_t value, const std::string& what) {
    if (std::in_range<Number>(value)) return static_cast<Number>(value);
    throw UserError("sizes are too large: " + what + " is " + std::to_string(value) + ", expected at most " +
                    std::to_string(std::numeric_limits<Number>::max()));
}

}  // namespace overlap
