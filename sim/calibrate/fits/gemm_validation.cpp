#include "sim/calibrate/fits/gemm_validation.hpp"

#include <algorithm>
#include <cmath>
#include <future>
#include <set>
#include <utility>

namespace overlap {
namespace {

GemmLibraryValidation judge_libraries(std::span<const GemmMeasurement> outside,
                                      std::span<const GemmMeasurement> inside, const GemmPrior& start,
                                      const GemmParameters& mixed) {
    GemmLibraryValidation result;
    result.fits = fit_libraries(outside, fit_gemm(outside, start).parameters);
    const auto predicted = [&](const GemmMeasurement& row) { return library_time(row, mixed, result.fits); };
    result.fitted = gemm_errors(outside, predicted);
    result.held_out = gemm_errors(inside, predicted);
    for (std::size_t i = 0; i < result.fits.size(); ++i) {
        std::vector<GemmMeasurement> own;
        for (const GemmMeasurement& row : inside)
            if (row.by_library == static_cast<int>(i) + 1) own.push_back(row);
        result.held_out_of_each.push_back(gemm_errors(own, predicted));
    }
    return result;
}

}  // namespace

GemmErrors gemm_errors(std::span<const GemmMeasurement> rows,
                       const std::function<Seconds(const GemmMeasurement&)>& predicted) {
    std::vector<double> errors;
    std::set<std::pair<std::int64_t, std::int64_t>> families;
    for (const GemmMeasurement& row : rows) {
        if (row.time < shortest_judged) continue;
        families.insert({row.shape.n, row.shape.k});
        errors.push_back(std::abs(predicted(row) / row.time - 1));
    }
    if (errors.empty()) return {};
    std::sort(errors.begin(), errors.end());
    double sum = 0;
    for (const double error : errors) sum += error;
    return {errors.size(), families.size(), sum / static_cast<double>(errors.size()),
            errors[errors.size() * 9 / 10]};
}

GemmErrors gemm_errors(std::span<const GemmMeasurement> rows, const GemmParameters& parameters,
                       std::span<const double> campaign_rates) {
    return gemm_errors(
        rows, [&](const GemmMeasurement& row) { return fitted_time(row, parameters, campaign_rates); });
}

int gemm_fold(const GemmShape& shape) {
    // splitmix64 of (N,K): spreads neighbouring sizes over the folds, the same on every machine.
    auto x =
        static_cast<std::uint64_t>(shape.n) * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(shape.k);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<int>((x ^ (x >> 31)) % gemm_folds);
}

std::vector<GemmMeasurement> rows_of_fold(std::span<const GemmMeasurement> rows, int fold, bool inside) {
    std::vector<GemmMeasurement> result;
    for (const GemmMeasurement& row : rows)
        if ((gemm_fold(row.shape) == fold) == inside) result.push_back(row);
    return result;
}

GemmValidation fit_and_validate(std::span<const GemmMeasurement> rows, const GemmPrior& prior,
                                std::span<const GemmMeasurement> anchors,
                                const std::optional<GemmPrior>& start_of_libraries) {
    // One thread for each fold. Folds are independent, so the result does not depend on timing.
    std::vector<std::future<GemmValidation>> folds;
    for (int fold = 0; fold < gemm_folds; ++fold)
        folds.push_back(std::async(std::launch::async, [rows, &prior, anchors, &start_of_libraries, fold] {
            const auto outside = rows_of_fold(rows, fold, false), inside = rows_of_fold(rows, fold, true);
            std::vector<GemmMeasurement> known = outside;
            known.insert(known.end(), anchors.begin(), anchors.end());
            GemmValidation result;
            result.fit = fit_gemm(known, prior);
            result.fitted = gemm_errors(outside, result.fit.parameters, result.fit.campaign_rates);
            result.held_out = gemm_errors(inside, result.fit.parameters, result.fit.campaign_rates);
            if (start_of_libraries)
                result.libraries =
                    judge_libraries(outside, inside, *start_of_libraries, result.fit.parameters);
            return result;
        }));
    GemmValidation result = folds.front().get();
    result.cross_validated_mean = result.held_out.mean / gemm_folds;
    result.cross_validated_p90 = result.held_out.p90 / gemm_folds;
    GemmLibraryValidation& libraries = result.libraries;
    libraries.cross_validated_mean = libraries.held_out.mean / gemm_folds;
    libraries.cross_validated_p90 = libraries.held_out.p90 / gemm_folds;
    for (auto fold = folds.begin() + 1; fold != folds.end(); ++fold) {
        const GemmValidation judged = fold->get();
        result.cross_validated_mean += judged.held_out.mean / gemm_folds;
        result.cross_validated_p90 += judged.held_out.p90 / gemm_folds;
        libraries.cross_validated_mean += judged.libraries.held_out.mean / gemm_folds;
        libraries.cross_validated_p90 += judged.libraries.held_out.p90 / gemm_folds;
    }
    return result;
}

}  // namespace overlap
