#include "sim/calibrate/fits/gemm_libraries_fit.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "sim/core/errors.hpp"

namespace overlap {
namespace {

constexpr double of_the_chip = 1.05;
const std::map<std::string, double> of_the_library{
    {"launch_us", 1.5},        {"tile_fixed_us", 2},   {"tile_epilogue_us", 2}, {"peak_TFLOPS", 1.2},
    {"tail_floor", 1.5},       {"partial_floor", 1.3}, {"split_k_fixed_us", 4}, {"unit_bandwidth_GBps", 1.5},
    {"overlap_exponent", 1.5}, {"split_k_GBps", 4},
};
constexpr double tile_spread = 1.4;

}  // namespace

GemmPrior library_prior(const GemmParameters& mixed) {
    GemmPrior prior{.start = mixed, .field_spread = {}, .tile_spread = tile_spread};
    for (const Field<GemmParameters>& field : GemmParameters::fields()) {
        const auto own = of_the_library.find(std::string(field.key));
        prior.field_spread.push_back(own == of_the_library.end() ? of_the_chip : own->second);
    }
    return prior;
}

std::vector<GemmFit> fit_libraries(std::span<const GemmMeasurement> rows, const GemmParameters& mixed) {
    int count = 0;
    for (const GemmMeasurement& row : rows) count = std::max(count, row.by_library);
    const GemmPrior prior = library_prior(mixed);
    std::vector<GemmFit> fits;
    for (int library = 1; library <= count; ++library) {
        std::vector<GemmMeasurement> own;
        for (const GemmMeasurement& row : rows)
            if (row.by_library == library) own.push_back(row);
        if (own.empty())
            throw UserError("kernel library " + std::to_string(library) + " of the table has no rows to fit");
        fits.push_back(fit_gemm(own, prior));
    }
    return fits;
}

Seconds library_time(const GemmMeasurement& row, const GemmParameters& mixed,
                     std::span<const GemmFit> libraries) {
    const GemmParameters& parameters =
        row.by_library == 0 ? mixed : libraries[static_cast<std::size_t>(row.by_library) - 1].parameters;
    return estimate_gemm(row.shape, parameters, row.busy).total();
}

}  // namespace overlap
