// Attention and MoE kernels against public tables, on families that no fit saw.
#include <catch2/catch.hpp>

#include "models/gemm_libraries.hpp"
#include "sim/calibrate/fits/kernel_derivations.hpp"
#include "sim/calibrate/fits/kernel_fit.hpp"
#include "tests/public_data.hpp"
#include "tests/test_support.hpp"
#include "tests/validation/asked.hpp"

namespace overlap::test::kernels_public_test {

using test::public_data;

TEST_CASE("held-out families of attention and MoE kernels are predicted within target") {
    // Means were asked, of prefill, decode and MoE.
    const std::array<double, 3> asked{0.08, 0.10, 0.12};
    int judged = 0, met = 0;
    // Of MoE on a device, for all formats: errors of balanced tokens and of power laws, added up, and their rows.
    std::map<std::string, std::pair<double, double>> of_distribution;
    for (const KernelSource& source : read_kernel_recipes(test::shipped.recipes()).tables) {
        // Reading all tables takes too long for every day: of H100, whose times are near H200's, none is read.
        if (source.device == "h100" || source.alone || source.kind == KernelTableKind::exchange) continue;
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

TEST_CASE("held-out shapes of all-to-alls by DeepEP are predicted within target") {
    int judged = 0;
    for (const KernelSource& source : read_kernel_recipes(test::shipped.recipes()).tables) {
        if (source.kind != KernelTableKind::exchange) continue;
        const Calibration calibration = test::shipped.calibration(source.device);
        const Json groups =
            read_json_file(test::source_folder / "configs/calibrations" / (source.device + ".json"));
        for (const auto& [format, members] : read_kernel_rows(public_data(), source, calibration).kept) {
            std::vector<KernelRow> held_out, in_node, between_nodes;
            for (const KernelRow& row : members) {
                if (row.fold != 0) continue;
                held_out.push_back(row);
                (std::get<ExchangeCall>(row.work).group.nodes > 1 ? between_nodes : in_node).push_back(row);
            }
            INFO(source.file << ", " << format);
            const Json& provenance = groups[kernel_groups[3]][format]["provenance"];
            const KernelErrors all = kernel_errors(held_out, calibration.kernels),
                               near = kernel_errors(in_node, calibration.kernels),
                               far = kernel_errors(between_nodes, calibration.kernels);
            CHECK(provenance["mean_error_held_out_pct"].get<double>() == Approx(100 * all.mean).margin(0.02));
            CHECK(provenance["rows_held_out"].get<std::size_t>() == all.rows);
            // Asked: normal kernels 8 %, low latency 10 %, two nodes 15 %.
            const bool low_latency = format.find("low_latency") != std::string::npos;
            CHECK(near.rows >= (low_latency ? 40u : 500u));
            CHECK(near.mean <= (low_latency ? 0.10 : 0.08));
            CHECK(far.rows == (source.device == "h200" && !low_latency ? 48u : 0u));
            CHECK(far.mean <= 0.15);
            ++judged;
        }
    }
    CHECK(judged == 16);
}

TEST_CASE("attention's kernels alone are predicted within target, by the fits that ship") {
    // Means and p90 reached: prefill, backward and decode of families that no fit saw.
    const std::map<std::string, std::array<double, 2>> reached{
        {"attention_prefill/bf16_kernel", {0.0194, 0.0326}},
        {"attention_prefill/bf16_kernel_backward", {0.031, 0.0608}},
        {"attention_decode/bf16_kernel", {0.035, 0.0895}}};
    const std::filesystem::path shipped = test::source_folder / "configs/calibrations";
    const TemporaryFolder folder;
    for (const char* device : {"h200", "h100"})
        std::filesystem::copy(shipped / (std::string(device) + ".json"), folder.path());
    const KernelRecipes recipes = read_kernel_recipes(test::shipped.recipes());
    const Json before = read_json_file(shipped / "h200.json");
    std::vector<KernelSource> alone = recipes.tables;
    std::erase_if(alone, [](const KernelSource& source) {
        return !source.alone || source.kind == KernelTableKind::moe;
    });
    REQUIRE(alone.size() == 2);
    const std::string date = before["attention_prefill"]["bf16_kernel"]["provenance"]["date"];
    const auto fits =
        write_kernel_calibrations(alone, "", test::source_folder / "traces", folder.path(), date, {"h200"});
    REQUIRE(fits.size() == reached.size());
    for (const KernelFitResult& fit : fits) {
        const auto& [mean, p90] = reached.at(fit.group + "/" + fit.format);
        INFO(fit.group << " " << fit.format << ": " << fit.held_out.mean << ", p90 " << fit.held_out.p90);
        CHECK(fit.held_out.mean <= mean);
        CHECK(fit.held_out.p90 <= p90);
        CHECK(fit.held_out.rows >= 25u);
    }
    CHECK(read_json_file(folder.path() / "h200.json") == before);
    // H100's are those of H200, scaled, and leave its own fits as they are.
    std::vector<KernelDerivation> derived = recipes.derived;
    std::erase_if(derived, [](const KernelDerivation& one) { return !one.alone; });
    REQUIRE(derived.size() == 1);
    const auto devices =
        write_derived_kernels(derived, test::source_folder / "configs/devices", folder.path(), date, {});
    CHECK(devices == std::vector<std::string>{"h100"});
    CHECK(read_json_file(folder.path() / "h100.json") == read_json_file(shipped / "h100.json"));
}

}  // namespace overlap::test::kernels_public_test
