// Errors by class, with the arithmetic.
#include "sim/calibrate/fits/gemm_classes.hpp"

#include <catch2/catch.hpp>

namespace overlap::test::gemm_classes_test {
namespace {

JudgedGemm judged(std::int64_t m, std::int64_t k, bool accumulate, double us, double fitted,
                  double held_out) {
    return {{{m, 256, k, DType::bf16, accumulate}, microseconds(us), 1.0, {}},
            microseconds(fitted),
            microseconds(held_out)};
}

ErrorClass find(const std::vector<ErrorClass>& classes, const std::string& name) {
    for (const ErrorClass& one : classes)
        if (one.name == name) return one;
    FAIL("no class " << name);
    return {};
}

}  // namespace

TEST_CASE("summary of errors: mean of magnitudes, p90, bias") {
    // Magnitudes 0.1 … 1.0; the 90th percentile is the tenth of ten; the bias is (5.5 − 2 · 0.1) / 10.
    const std::vector<double> errors{-0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
    const ErrorSummary summary = summarise(errors);
    CHECK(summary.mean == Approx(0.55));
    CHECK(summary.p90 == Approx(1.0));
    CHECK(summary.bias == Approx(0.53));
    CHECK(summarise({}).mean == 0);
}

TEST_CASE("times and losses fall into their classes") {
    const std::vector<JudgedGemm> gemms{
        judged(1024, 1024, false, 200, 200, 220),  // +10 % held out
        judged(512, 1024, false, 110, 110, 110),   // half of it: exact
        judged(256, 1024, false, 60, 60, 54),      // M/P, P = 4: −10 %
        judged(192, 1024, false, 40, 40, 44),      // (P−1)M/P² = 3 · 1024 / 16, below 50 µs
        judged(1024, 512, true, 125, 125, 125),    // K/2 with beta = 1: exact
    };
    const auto classes = gemm_classes(gemms);
    const auto held_out = [&](const std::string& name) { return find(classes, name).held_out; };
    // 10, 0, 10, 0 % of four.
    CHECK(find(classes, all_gemms_class).count == 4);
    CHECK(held_out(all_gemms_class).mean == Approx(0.05));
    CHECK(held_out(all_gemms_class).bias == Approx(0).margin(1e-12));
    CHECK(find(classes, all_gemms_class).fitted.mean == Approx(0).margin(1e-12));
    CHECK(find(classes, "  whole (beta = 0)").count == 3);
    CHECK(find(classes, "  part M/2").count == 2);  // 512 of 1024 and 256 of 512
    CHECK(held_out("  part M/P").mean == Approx(0.1));
    CHECK(find(classes, "  part (P-1)M/P^2").count == 0);
    CHECK(find(classes, "GEMM below 50 us").count == 1);
    CHECK(held_out("  part K-slab K/2").mean == Approx(0).margin(1e-12));
    // 4 · 60 / 200 = 1.2 measured, 4 · 54 / 220 predicted.
    CHECK(held_out("  P x M/P").mean == Approx(1 - 216.0 / 220 / 1.2));
    // 60 + 4 · 40 = 220 of 200 measured; 54 + 4 · 44 = 230 of 220 predicted.
    CHECK(held_out("  M/P + P x (P-1)M/P^2").mean == Approx(1 - (230.0 / 220) / (220.0 / 200)));
    CHECK(held_out("  2 x K/2, beta=1").bias == Approx((250.0 / 220) / (250.0 / 200) - 1));
    // 2 × M/2 of 1024 and of 512, P × M/P, own shard + (P−1)M/P², 2 × K/2.
    CHECK(find(classes, all_losses_class).count == 5);
}

}  // namespace overlap::test::gemm_classes_test
