#include "sim/core/units.hpp"

#include <catch2/catch.hpp>
#include <type_traits>

#include "sim/core/operators.hpp"

namespace overlap::test::units_test {

TEST_CASE("prefixed units are SI inside and come back as they went in") {
    CHECK(microseconds(3).si() == Approx(3e-6));
    CHECK(to_microseconds(Seconds(2e-6)) == Approx(2));
    CHECK(gigabytes_per_second(4).si() == Approx(4e9));
    CHECK(to_gigabytes_per_second(BytesPerSecond(5e9)) == Approx(5));
    CHECK(teraflops(6).si() == Approx(6e12));
    CHECK(to_teraflops(FlopsPerSecond(7e12)) == Approx(7));
    CHECK(gigabytes(9).si() == Approx(9e9));
}

TEST_CASE("products and quotients carry their dimension, and a ratio is a plain number") {
    static_assert(std::is_same_v<decltype(Bytes(1) / BytesPerSecond(1)), Seconds>);
    static_assert(std::is_same_v<decltype(BytesPerSecond(1) * Seconds(1)), Bytes>);
    static_assert(std::is_same_v<decltype(Flops(1) / Seconds(1)), FlopsPerSecond>);
    static_assert(std::is_same_v<decltype(Bytes(1) / Bytes(1)), double>);
    static_assert(std::is_same_v<decltype(Watts(1) * Seconds(1)), Joules>);
    static_assert(std::is_same_v<decltype(Bytes(1) * JoulesPerByte(1)), Joules>);
    static_assert(std::is_same_v<decltype(Flops(1) * JoulesPerFlop(1)), Joules>);
    static_assert(!std::is_same_v<Joules, Flops>);
    static_assert(!std::is_convertible_v<double, Seconds> && !std::is_convertible_v<Seconds, double>);
    // 1 GB at 2 GB/s: half a second. 3 B / 2 B = 1.5.
    CHECK((gigabytes(1) / gigabytes_per_second(2)).si() == Approx(0.5));
    CHECK(Bytes(3) / Bytes(2) == Approx(1.5));
}

TEST_CASE("quantities add, scale and compare as numbers do") {
    Seconds time = Seconds(1) + Seconds(2);
    time += Seconds(3);
    time -= Seconds(2);
    CHECK(time.si() == Approx(4));  // 1 + 2 + 3 − 2
    CHECK((2.0 * time / 4.0).si() == Approx(2));
    CHECK(Seconds(1) < Seconds(2));
    CHECK(Seconds() == Seconds(0));
}

TEST_CASE("a matrix has rows times columns elements, and narrow operands give bf16 results") {
    // 10 × 20 elements of 2 B; of half a byte.
    CHECK(matrix_size(10, 20, DType::bf16).si() == Approx(400));
    CHECK(matrix_size(10, 20, DType::fp4).si() == Approx(100));
    CHECK(output_type(DType::fp8) == DType::bf16);
    CHECK(output_type(DType::tf32) == DType::fp32);
    CHECK(output_type(DType::fp16) == DType::fp16);
    // 2 · 10 · 20 · 30 FLOP.
    CHECK(GemmShape{10, 20, 30}.flops().si() == Approx(12'000));
    int checked = 0;
    for (std::size_t i = 0; i < dtype_names.size(); ++i, ++checked)
        CHECK(element_size(static_cast<DType>(i)) > Bytes(0));
    CHECK(checked == 7);
}

}  // namespace overlap::test::units_test
