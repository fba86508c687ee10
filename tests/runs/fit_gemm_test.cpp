// The fit finds the parameters that made its data, through noise and outliers.
#include "sim/calibrate/fits/fit_gemm.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/calibrate/fits/gemm_contenders.hpp"
#include "sim/calibrate/fits/robust_fit.hpp"
#include "tests/recipes.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::fit_gemm_test {
namespace {

/// In [0, 1), from splitmix64 of `index`: the same on every machine.
double uniform(std::uint64_t index) {
    std::uint64_t x = index * 0x9e3779b97f4a7c15ULL + 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1.0p-53;
}

Field<GemmParameters> field(const std::string& key) {
    for (const Field<GemmParameters>& field : GemmParameters::fields())
        if (field.key == key) return field;
    throw std::logic_error(key);
}

}  // namespace

TEST_CASE("fitting recovers the parameters of synthetic times with noise and outliers") {
    // Start from the H200's prior with two tiles, so that waves show, and move parameters by 15 to 50 %.
    GemmPrior prior = test::shipped_recipes().measured.front().prior;
    prior.start.tiles = {{256, 128, 1.0}, {128, 128, 0.9}};
    GemmParameters truth = prior.start;
    const std::map<std::string, double> moved{
        {"launch_us", 5.5}, {"tile_epilogue_us", 0.75}, {"peak_TFLOPS", 950}, {"tail_floor", 0.75}};
    for (const auto& [key, value] : moved) {
        REQUIRE(std::abs(value / field(key).get(truth) - 1) > 0.15);
        field(key).set(truth, value);
    }
    std::vector<GemmMeasurement> rows;
    std::uint64_t draw = 0;
    int outliers = 0;
    for (const std::int64_t n : {1536, 2560, 5120, 8192, 14'336})
        for (const std::int64_t k : {1024, 2048, 8192})
            for (std::int64_t m = 64; m <= 16'384; m += m < 2048 ? 128 : 1024) {
                const GemmShape shape{m, n, k};
                // ± 3 % about evenly spread; every 20th is half as long again.
                double factor = 1 + 0.06 * (uniform(draw++) - 0.5);
                if (uniform(draw++) < 0.05) {
                    factor *= 1.5;
                    ++outliers;
                }
                rows.push_back({shape, estimate_gemm(shape, truth).total() * factor, 1.0, {}});
            }
    REQUIRE(rows.size() == 15 * (16 + 14));
    REQUIRE(outliers >= 15);
    const GemmFit fit = fit_gemm(rows, prior);
    for (std::size_t i = 0; i < GemmParameters::fields().size(); ++i) {
        const Field<GemmParameters>& field = GemmParameters::fields()[i];
        const auto wanted = moved.find(std::string(field.key));
        const double fitted = field.get(fit.parameters);
        if (wanted == moved.end()) continue;
        INFO(field.key << ": " << fitted << " ± " << fit.fields[i].standard_error);
        // Within 10 % (the epilogue shares its time with tile_fixed, which few shapes tell apart; the others
        // are nearer), and the error that the fit states is of the right size.
        CHECK(fitted == Approx(wanted->second).epsilon(field.key == "tile_epilogue_us" ? 0.1 : 0.06));
        CHECK(std::abs(fitted - wanted->second) < 4 * fit.fields[i].standard_error);
        CHECK(fit.fields[i].standard_error < 0.1 * wanted->second);
        CHECK(fit.fields[i].prior_share < 0.5);
        CHECK(fit.fields[i].residual > 0.005);
        CHECK(fit.fields[i].residual < 0.06);
    }
    // Outliers and all, the clean times are met to the noise.
    double error = 0;
    for (const GemmMeasurement& row : rows)
        error += std::abs(estimate_gemm(row.shape, fit.parameters).total() /
                              estimate_gemm(row.shape, truth).total() -
                          1) /
                 static_cast<double>(rows.size());
    CHECK(error < 0.015);
}

TEST_CASE("a campaign's rate is told apart from the main one's; what starts at 0 stays 0") {
    const GemmPrior& prior = test::shipped_recipes().measured.front().prior;
    std::vector<GemmMeasurement> rows;
    for (const std::int64_t n : {2560, 5120, 8192, 14'336})
        for (std::int64_t m = 1024; m <= 16'384; m += 512) {
            GemmMeasurement row{{m, n, 8192}, {}, 1.0, {}, n == 5120 ? 1 : 0};
            row.time = fitted_time(row, prior.start, std::vector{1.15});
            rows.push_back(row);
        }
    const GemmFit fit = fit_gemm(rows, prior);
    REQUIRE(fit.campaign_rates.size() == 1);
    CHECK(fit.campaign_rates[0] == Approx(1.15).epsilon(0.01));
    CHECK(fit.campaign_errors[0] > 0);
    CHECK(fit.campaign_errors[0] < 0.05);
    CHECK(field("stride_loss_per_kB").get(prior.start) == 0);
    CHECK(fit.parameters.stride_loss == 0);
}

TEST_CASE("a parameter that the rows do not touch stays at its prior and says so") {
    // One shape that fills every unit, never split and far from the memory roof: split-K rate says nothing.
    const GemmPrior& prior = test::shipped_recipes().measured.front().prior;
    const GemmShape shape{8192, 8192, 8192};
    const GemmFit fit = fit_gemm(std::vector{GemmMeasurement{shape, microseconds(1400), 1.0, {}}}, prior);
    int checked = 0;
    for (std::size_t i = 0; i < GemmParameters::fields().size(); ++i) {
        if (GemmParameters::fields()[i].key != "split_k_GBps") continue;
        CHECK(fit.fields[i].prior_share == Approx(1));
        CHECK(GemmParameters::fields()[i].get(fit.parameters) ==
              Approx(GemmParameters::fields()[i].get(prior.start)));
        ++checked;
    }
    CHECK(checked == 1);
}

TEST_CASE("near a point, a GEMM's contenders are as fast as all of its tiles, to the last digit") {
    const double step = RobustProblem{}.step;
    const GemmParameters at = shipped.machine("h100_2").calibration.gemm_for(DType::bf16);
    std::size_t least = at.tiles.size(), most = 0;
    for (const GemmShape& shape :
         {GemmShape{8192, 2560, 8192}, GemmShape{4096, 512, 16384}, GemmShape{64, 8192, 4096},
          GemmShape{3000, 5120, 2048}, GemmShape{1500, 1000, 1000}}) {
        const GemmContenders contenders({shape, microseconds(1), 1.0, {}}, at, step);
        const std::size_t count = contenders.among(at).tiles.size();
        least = std::min(least, count);
        most = std::max(most, count);
        const auto check = [&](const GemmParameters& moved) {
            CHECK(estimate_gemm(shape, contenders.among(moved)).body == estimate_gemm(shape, moved).body);
        };
        for (const double factor : {std::exp(step), std::exp(-step)}) {
            for (const Field<GemmParameters>& field : GemmParameters::fields()) {
                GemmParameters moved = at;
                field.set(moved, field.get(at) * factor);
                check(moved);
            }
            for (std::size_t tile = 0; tile < at.tiles.size(); ++tile) {
                GemmParameters moved = at;
                moved.tiles[tile].efficiency *= factor;
                check(moved);
            }
        }
    }
    CHECK(least >= 1);
    CHECK(least < at.tiles.size() / 2);  // few are left, or nothing is gained
    CHECK(most > least);
}

}  // namespace overlap::test::fit_gemm_test
