// Attention and MoE kernels against public tables, on families that no fit saw.
#include <catch2/catch.hpp>

#include "models/calibration/fits/kernel_fit.hpp"
#include "models/gemm_libraries.hpp"
#include "tests/public_data.hpp"
#include "tests/skip.hpp"
#include "tests/test_support.hpp"
#include "tests/validation/asked.hpp"

namespace overlap::test::kernels_public_test {

using test::public_data;

TEST_CASE("held-out families of attention and MoE kernels are predicted within target") {
    if (!std::filesystem::is_directory(public_data() / "moe"))
        return test::skip_test("no public tables of attention and MoE in " + public_data().string() +
                               " (set OVERLAP_SHARED_DATA)");
    // Means were asked, of prefill, decode and MoE.
    const std::array<double, 3> asked{0.08, 0.10, 0.12};
    int judged = 0, met = 0;
    // Of MoE on a device, for all formats: errors of balanced tokens and of power laws, added up, and their rows.
    std::map<std::string, std::pair<double, double>> of_distribution;
    for (const KernelSource& source : read_kernel_recipes(test::shipped.recipes()).tables) {
        // Reading all tables takes too long for every day: of H100, whose times are near H200's, none is read.
        if (source.device == "h100") continue;
        const Calibration calibration = test::shipped.calibration(source.device);
        const Json groups =
            read_json_file(test::source_folder / "configs/calibrations" / (source.device + ".json"));
        const std::size_t kind = kernel_group_of(source.kind);
        const KernelRows rows = read_kernel_rows(public_data(), source, calibration);
        for (const auto& [format, members] : rows.kept) {
            std::vector<KernelRow> held_out;
            for (const KernelRow& row : members)
                if (row.fold == 0) held_out.push_back(row);
            const KernelErrors errors = kernel_errors(held_out, calibration.kernels);
            INFO(source.file << ", " << format << ": mean " << errors.mean << ", p90 " << errors.p90 << " of "
                             << errors.rows << " rows, " << errors.families << " families");
            CHECK(errors.rows >= (source.device == "mi300x" ? 18u : 200u));
            // The shipped provenance is of these very parameters.
            const Json& provenance = groups[kernel_groups[kind]][format]["provenance"];
            CHECK(provenance["mean_error_held_out_pct"].get<double>() ==
                  Approx(100 * errors.mean).margin(0.02));
            CHECK(provenance["rows_held_out"].get<std::size_t>() == errors.rows);
            met += errors.mean <= asked.at(kind);
            ++judged;
            std::map<std::string, std::vector<KernelRow>> apart;
            for (const KernelRow& row : held_out)
                if (const auto* shape = std::get_if<MoeShape>(&row.work))
                    apart[source.device + (shape->load.imbalance == 0 ? ", balanced" : ", power law")]
                        .push_back(row);
            for (const auto& [distribution, some] : apart) {
                const KernelErrors of_some = kernel_errors(some, calibration.kernels);
                of_distribution[distribution].first += of_some.mean * static_cast<double>(of_some.rows);
                of_distribution[distribution].second += static_cast<double>(of_some.rows);
            }
        }
    }
    CHECK(of_distribution.size() == 4);
    for (const auto& [distribution, errors] : of_distribution) {
        INFO(distribution << ": " << errors.first / errors.second);
        CHECK(errors.first / errors.second <= asked[2]);
    }
    CHECK(judged == 20);
    // Known gaps: nvfp4 on B200 by CUTLASS, 16 %; prefill on MI300X, 11 %, whose fold 0 has all heads of 64 elements.
    CHECK(met == judged - 2);
}

}  // namespace overlap::test::kernels_public_test
