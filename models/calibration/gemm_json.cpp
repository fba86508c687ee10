#include "models/calibration/gemm_json.hpp"

#include <array>
#include <cmath>

namespace overlap {
namespace {

constexpr double mostly = 0.5;  // prior share from which a parameter counts as not determined by its rows

/// As the key ends: "launch_us" is in us.
std::string unit_of(const std::string& key) {
    for (const std::string unit : {"us", "TFLOPS", "GBps", "MB", "per_kB"})
        if (key.ends_with("_" + unit)) return unit;
    return "1";
}

struct Fitted {
    double value, standard_error, prior_share, residual;
};

Json entry(const std::string& key, const Fitted& fitted, const FitOrigin& origin) {
    const std::string& source = fitted.prior_share > mostly ? origin.prior : origin.fitted;
    Json result{{"value", rounded(fitted.value)}};
    if (!origin.file.empty()) result["unit"] = unit_of(key);
    result["standard_error"] = rounded(fitted.standard_error);
    if (!origin.file.empty()) {
        result["residual_pct"] = percent(fitted.residual);
        result["file"] = origin.file;
        result["date"] = origin.date;
    }
    result["source"] = source;
    return result;
}

}  // namespace

double rounded(double value) {
    if (value == 0) return 0;
    const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 5);
    return unit < 1 ? std::round(value / unit) / std::round(1 / unit) : std::round(value / unit) * unit;
}

double percent(double share) {
    return std::round(share * 1e4) / 1e2;
}

Json parameter_entry(double value, const std::string& source) {
    return {{"value", rounded(value)}, {"source", source}};
}

std::vector<std::string> undetermined_parameters(const GemmFit& fit) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < gemm_fields().size(); ++i)
        if (fit.field_prior_share[i] > mostly) names.push_back(gemm_fields()[i].key);
    for (std::size_t i = 0; i < fit.parameters.tiles.size(); ++i)
        if (fit.tile_prior_share[i] > mostly) names.push_back("tiles/" + tile_key(fit.parameters.tiles[i]));
    return names;
}

Json gemm_group(const Json& provenance, const GemmFit& fit, const FitOrigin& origin) {
    Json group{{"provenance", provenance},
               {"compute_units", parameter_entry(fit.parameters.compute_units, "datasheet")},
               {"k_step", parameter_entry(static_cast<double>(fit.parameters.k_step),
                                          "main-loop depth of the libraries' usual kernels (estimate)")}};
    std::size_t i = 0;
    for (const GemmField& field : gemm_fields()) {
        group[field.key] = entry(field.key,
                                 {field.get(fit.parameters), fit.field_errors[i], fit.field_prior_share[i],
                                  fit.field_residuals[i]},
                                 origin);
        ++i;
    }
    Json tiles = Json::object();
    for (std::size_t t = 0; t < fit.parameters.tiles.size(); ++t) {
        const GemmTile& tile = fit.parameters.tiles[t];
        tiles[tile_key(tile)] =
            entry("", {tile.efficiency, fit.tile_errors[t], fit.tile_prior_share[t], fit.tile_residuals[t]},
                  origin);
    }
    group["tiles"] = tiles;
    return group;
}

}  // namespace overlap
