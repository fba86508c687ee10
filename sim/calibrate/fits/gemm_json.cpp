#include "sim/calibrate/fits/gemm_json.hpp"

namespace overlap {

std::vector<std::string> undetermined_parameters(const GemmFit& fit) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < GemmParameters::fields().size(); ++i) {
        const Field<GemmParameters>& field = GemmParameters::fields()[i];
        const bool given = field.required || field.get(fit.parameters) != 0;
        if (given && fit.fields[i].prior_share > mostly_prior) names.emplace_back(field.key);
    }
    for (std::size_t i = 0; i < fit.parameters.tiles.size(); ++i)
        if (fit.tiles[i].prior_share > mostly_prior)
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
    if (fit.parameters.chip.engines > 0) {
        group["dies"] = parameter_entry(fit.parameters.chip.dies, "datasheet");
        group["engines"] = parameter_entry(fit.parameters.chip.engines, "datasheet");
        group["first_large_engine"] =
            parameter_entry(fit.parameters.chip.first_large_engine, "prior of configs/calibrations/recipes");
    }
    if (fit.parameters.row_step > 0)
        group["row_step"] = parameter_entry(static_cast<double>(fit.parameters.row_step),
                                            "configs/calibrations/recipes/tiles.json, the library's list");
    std::size_t i = 0;
    for (const Field<GemmParameters>& field : GemmParameters::fields()) {
        const std::string key(field.key);
        FittedValue value = fit.fields[i++];
        value.value = field.get(fit.parameters);
        if (field.required || value.value != 0) group[key] = parameter_entry(key, value, origin);
    }
    Json& tiles = group["tiles"] = Json::object();
    for (std::size_t t = 0; t < fit.tiles.size(); ++t)
        tiles[tile_key(fit.parameters.tiles[t])] = parameter_entry("", fit.tiles[t], origin);
    return group;
}

}  // namespace overlap
