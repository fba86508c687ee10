#pragma once

#include <compare>

namespace overlap {

/// A physical quantity in SI units with its dimension in the type: seconds^Time · bytes^Byte · flop^Flop ·
/// joules^Joule. Products and quotients carry the right dimension; a dimensionless result is a plain double.
/// Prefixed units exist only at the edges: `microseconds(…)` makes a value, `to_microseconds(…)` reads it.
template <int Time, int Byte, int Flop, int Joule = 0>
class Quantity {
public:
    constexpr Quantity() = default;
    explicit constexpr Quantity(double si) : si_(si) {}

    constexpr double si() const { return si_; }

    constexpr Quantity& operator+=(Quantity other) { return si_ += other.si_, *this; }
    constexpr Quantity& operator-=(Quantity other) { return si_ -= other.si_, *this; }
    friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.si_ + b.si_); }
    friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.si_ - b.si_); }
    friend constexpr Quantity operator*(Quantity a, double f) { return Quantity(a.si_ * f); }
    friend constexpr Quantity operator*(double f, Quantity a) { return Quantity(a.si_ * f); }
    friend constexpr Quantity operator/(Quantity a, double f) { return Quantity(a.si_ / f); }
    friend constexpr auto operator<=>(Quantity, Quantity) = default;

private:
    double si_ = 0.0;
};

template <int T1, int B1, int F1, int J1, int T2, int B2, int F2, int J2>
constexpr auto operator*(Quantity<T1, B1, F1, J1> a, Quantity<T2, B2, F2, J2> b) {
    if constexpr (T1 + T2 == 0 && B1 + B2 == 0 && F1 + F2 == 0 && J1 + J2 == 0)
        return a.si() * b.si();
    else
        return Quantity<T1 + T2, B1 + B2, F1 + F2, J1 + J2>(a.si() * b.si());
}

template <int T1, int B1, int F1, int J1, int T2, int B2, int F2, int J2>
constexpr auto operator/(Quantity<T1, B1, F1, J1> a, Quantity<T2, B2, F2, J2> b) {
    if constexpr (T1 == T2 && B1 == B2 && F1 == F2 && J1 == J2)
        return a.si() / b.si();
    else
        return Quantity<T1 - T2, B1 - B2, F1 - F2, J1 - J2>(a.si() / b.si());
}

using Seconds = Quantity<1, 0, 0>;
using Bytes = Quantity<0, 1, 0>;
using Flops = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<-1, 1, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1>;
using Joules = Quantity<0, 0, 0, 1>;
using Watts = Quantity<-1, 0, 0, 1>;
using JoulesPerByte = Quantity<0, -1, 0, 1>;
using JoulesPerFlop = Quantity<0, 0, -1, 1>;

constexpr Seconds microseconds(double us) {
    return Seconds(us * 1e-6);
}
constexpr double to_microseconds(Seconds t) {
    return t.si() * 1e6;
}
constexpr BytesPerSecond gigabytes_per_second(double rate) {
    return BytesPerSecond(rate * 1e9);
}
constexpr double to_gigabytes_per_second(BytesPerSecond rate) {
    return rate.si() * 1e-9;
}
constexpr FlopsPerSecond teraflops(double rate) {
    return FlopsPerSecond(rate * 1e12);
}
constexpr double to_teraflops(FlopsPerSecond rate) {
    return rate.si() * 1e-12;
}
constexpr Bytes gigabytes(double size) {
    return Bytes(size * 1e9);
}

}  // namespace overlap
