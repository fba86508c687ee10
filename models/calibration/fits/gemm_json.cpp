#include "models/calibration/fits/gemm_json.hpp"

namespace overlap {

std::vector<std::string> undetermined_parameters(const GemmFit& fit) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < GemmParameters::fields().size(); ++i) {
        const Field<GemmParameters>& field = GemmParameters::fields()[i];
        const bool given = field.required || field.get(fit.parameters) != 0;
        if (given && fit.field_prior_share[i] > mostly_prior) names.emplace_back(field.key);
    }
    for (std::size_t i = 0; i < fit.parameters.tiles.size(); ++i)
        if (fit.tile_prior_share[i] > mostly_prior)
            names.push_back("tiles/" + tile_key(fit.parameters.tiles[i]));
    return names;
}

Json gemm_group(const Json& provenance, const std::string& library, const GemmFit& fit,
                const FitOrigin& origin) {
    Json group{{"provenance", provenance},
               {"library", library},
               {"compute_units", parameter_entry(fit.parameters.compute_units, "datasheet")},
               {"k_step", parameter_entry(static_cast<double>(fit.parameters.k_step),
                                          "main-loop depth of the libraries' usual kernels (estimate)")}};
    if (fit.parameters.engines > 0) {
        group["dies"] = parameter_entry(fit.parameters.dies, "datasheet");
        group["engines"] = parameter_entry(fit.parameters.engines, "datasheet");
        group["first_large_engine"] =
            parameter_entry(fit.parameters.first_large_engine, "prior of configs/calibrations/recipes");
    }
    if (fit.parameters.row_step > 0)
        group["row_step"] = parameter_entry(static_cast<double>(fit.parameters.row_step),
                                            "configs/calibrations/recipes/tiles.json, the library's list");
    std::size_t i = 0;
    for (const Field<GemmParameters>& field : GemmParameters::fields()) {
        const std::string key(field.key);
        const FittedValue value{field.get(fit.parameters), fit.field_errors[i], fit.field_prior_share[i],
                                fit.field_residuals[i]};
        ++i;
        if (field.required || value.value != 0) group[key] = parameter_entry(key, value, origin);
    }
    Json tiles = Json::object();
    for (std::size_t t = 0; t < fit.parameters.tiles.size(); ++t) {
        const GemmTile& tile = fit.parameters.tiles[t];
        tiles[tile_key(tile)] = parameter_entry(
            "", {tile.efficiency, fit.tile_errors[t], fit.tile_prior_share[t], fit.tile_residuals[t]},
            origin);
    }
    group["tiles"] = tiles;
    return group;
}

}  // namespace overlap
