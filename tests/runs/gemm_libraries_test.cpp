// Kernel libraries of one device: their parameters are fitted apart, and one of them can be chosen.
#include "models/gemm_libraries.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/calibrate/fits/gemm_libraries_fit.hpp"
#include "tests/recipes.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::gemm_libraries_test {

using Catch::Contains;

namespace {

/// mi355x.json, with another text as its `gemm_library`.
ConfigFile calibration_with(const std::string& library) {
    ConfigFile file = read_config_file(source_folder / "configs/calibrations/mi355x.json", "calibration");
    file.json["gemm_library"] = library;
    return file;
}

}  // namespace

TEST_CASE("two libraries with kernels of their own are told apart by their rows") {
    const GemmParameters mixed = test::shipped_recipes().measured.front().prior.start;
    // Rows of 0 belong to no library; the others start a kernel in 3 and in 6 µs, one at 1.15 of the rate.
    GemmParameters first = mixed, second = mixed;
    first.launch = microseconds(3);
    second.launch = microseconds(6);
    second.peak_rate = 1.15 * mixed.peak_rate;
    std::vector<GemmMeasurement> rows;
    int turn = 0;
    for (const std::int64_t n : {1024, 2560, 5120, 8192})
        for (const std::int64_t k : {512, 1024, 4096, 8192})
            for (std::int64_t m = 256; m <= 16'384; m += m < 2048 ? 128 : 1024) {
                GemmMeasurement row{{m, n, k}, {}, 1.0, {}, 0, turn++ % 3};
                const GemmParameters& truth = row.by_library == 1   ? first
                                              : row.by_library == 2 ? second
                                                                    : mixed;
                row.time = estimate_gemm(row.shape, truth).total();
                rows.push_back(row);
            }
    REQUIRE(rows.size() == 4 * 4 * (14 + 15));
    const std::vector<GemmFit> fits = fit_libraries(rows, mixed);
    REQUIRE(fits.size() == 2);
    // The rate is shared between the peak and the tiles, the start between
    // launch and prologue: the times tell.
    CHECK(fits[0].parameters.launch < 0.9 * mixed.launch);
    CHECK(fits[1].parameters.launch > 1.1 * mixed.launch);
    const GemmShape large{16'384, 8192, 8192};
    const auto rate = [&](const GemmParameters& p) {
        return estimate_gemm(large, mixed).total() / estimate_gemm(large, p).total();
    };
    CHECK(rate(fits[0].parameters) == Approx(1).epsilon(0.01));
    CHECK(rate(fits[1].parameters) == Approx(rate(second)).epsilon(0.01));
    CHECK(rate(second) > 1.1);
    double error = 0, error_mixed = 0;
    for (const GemmMeasurement& row : rows) {
        error += std::abs(library_time(row, mixed, fits) / row.time - 1);
        error_mixed += std::abs(estimate_gemm(row.shape, mixed).total() / row.time - 1);
    }
    CHECK(error / static_cast<double>(rows.size()) < 0.01);
    CHECK(error_mixed / static_cast<double>(rows.size()) > 0.03);
}

TEST_CASE("a library without rows cannot be fitted") {
    const GemmParameters mixed = test::shipped_recipes().measured.front().prior.start;
    const std::vector rows{GemmMeasurement{{4096, 4096, 4096}, microseconds(200), 1.0, {}, 0, 2}};
    CHECK_THAT(error_of([&] { fit_libraries(rows, mixed); }), Contains("library 1"));
}

TEST_CASE("gemm_library chooses whose kernels run") {
    const ConfigFile mixed = calibration_with("mixed"), assembly = calibration_with("asm");
    const auto libraries = read_gemm_libraries(mixed);
    REQUIRE(libraries.contains("asm"));
    const auto by_default = read_gemm_calibration(mixed), chosen = read_gemm_calibration(assembly);
    CHECK(chosen.at(DType::bf16) == libraries.at("asm").at(DType::bf16));
    CHECK_FALSE(by_default.at(DType::bf16) == chosen.at(DType::bf16));
    // It was fitted for bf16 alone.
    CHECK(by_default.at(DType::fp8) == chosen.at(DType::fp8));

    const std::string error = error_of([] { read_gemm_calibration(calibration_with("asn")); });
    CHECK_THAT(error, Contains("/gemm_library"));
    CHECK_THAT(error, Contains("asm"));
    ConfigFile without = mixed;
    without.json.erase("gemm_library");
    CHECK_THAT(error_of([&] { read_gemm_calibration(without); }), Contains("gemm_library"));
    // A device whose table does not tell libraries apart has none.
    CHECK(
        read_gemm_libraries(read_config_file(source_folder / "configs/calibrations/h100.json", "calibration"))
            .empty());
}

TEST_CASE("a what-if names the library of a machine's GEMMs") {
    const WhatIf assembly(Json{{"device.gemm_library", "asm"}}, "test");
    const Machine by_default = shipped.machine("mi355x_8", {}),
                  chosen = shipped.machine("mi355x_8", assembly);
    const auto libraries = read_gemm_libraries(
        read_config_file(source_folder / "configs/calibrations/mi355x.json", "calibration"));
    CHECK(chosen.calibration.gemm_for(DType::bf16) == libraries.at("asm").at(DType::bf16));
    CHECK_FALSE(by_default.calibration.gemm_for(DType::bf16) == chosen.calibration.gemm_for(DType::bf16));
}

}  // namespace overlap::test::gemm_libraries_test
