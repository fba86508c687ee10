#include "sim/calibrate/fits/gemm_calibration.hpp"

#include <map>
#include <set>

#include "models/gemm_libraries.hpp"
#include "sim/calibrate/fits/gemm_json.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {
namespace {

/// Which rows have the rate of campaign `number`.
std::string campaign_name(const GemmRecipe& recipe, int number) {
    for (const GemmTable& table : recipe.more_tables)
        if (table.filter.campaign == number) return table.file;
    return recipe.filter.campaigns.texts.at(static_cast<std::size_t>(number) - 1);
}

Json provenance(const GemmRecipe& recipe, const GemmValidation& validation, const std::string& date) {
    Json anchors = Json::array();
    for (const GemmAnchor& anchor : recipe.anchors) anchors.push_back(anchor.source);
    Json result{{"file", published_table(recipe.file)},
                {"origin", recipe.origin},
                {"licence", recipe.licence},
                {"date", date},
                {"method", "models/calibration/fit_gemm; held out: every (N,K) family of fold 0 (gemm_fold)"},
                {"judged_on", "kernels of 20 us and more"},
                {"rows_fitted", validation.fitted.rows},
                {"rows_held_out", validation.held_out.rows},
                {"families_fitted", validation.fitted.families},
                {"families_held_out", validation.held_out.families},
                {"mean_error_fitted_pct", percent(validation.fitted.mean)},
                {"mean_error_held_out_pct", percent(validation.held_out.mean)},
                {"p90_error_held_out_pct", percent(validation.held_out.p90)},
                {"mean_error_cross_validated_pct", percent(validation.cross_validated_mean)},
                {"p90_error_cross_validated_pct", percent(validation.cross_validated_p90)}};
    if (!recipe.anchors.empty()) result["anchors"] = anchors;
    for (std::size_t i = 0; i < validation.fit.campaign_rates.size(); ++i)
        result["campaigns"].push_back({{"rows", campaign_name(recipe, static_cast<int>(i) + 1)},
                                       {"rate", rounded(validation.fit.campaign_rates[i])},
                                       {"standard_error", rounded(validation.fit.campaign_errors[i])}});
    const GemmLibraryValidation& libraries = validation.libraries;
    if (!libraries.fits.empty())
        result["library_known"] = {
            {"mean_error_fitted_pct", percent(libraries.fitted.mean)},
            {"mean_error_held_out_pct", percent(libraries.held_out.mean)},
            {"p90_error_held_out_pct", percent(libraries.held_out.p90)},
            {"mean_error_cross_validated_pct", percent(libraries.cross_validated_mean)},
            {"p90_error_cross_validated_pct", percent(libraries.cross_validated_p90)}};
    for (const GemmTable& table : recipe.more_tables)
        result["more_tables"].push_back({{"file", published_table(table.file)}, {"origin", table.origin}});
    if (!recipe.note.empty()) result["note"] = recipe.note;
    return result;
}

/// The group of the recipe's kernel library `index`.
Json library_json(const GemmRecipe& recipe, const GemmValidation& validation, std::size_t index,
                  const std::string& date) {
    const std::string table = published_table(recipe.file),
                      rows = recipe.filter.libraries.column + " = " + recipe.filter.libraries.texts.at(index);
    const GemmErrors& held_out = validation.libraries.held_out_of_each[index];
    const Json provenance{{"file", table},
                          {"rows", rows},
                          {"origin", recipe.origin},
                          {"licence", recipe.licence},
                          {"date", date},
                          {"method", "models/calibration/gemm_libraries_fit, held out as in gemm"},
                          {"judged_on", "kernels of 20 us and more"},
                          {"rows_held_out", held_out.rows},
                          {"families_held_out", held_out.families},
                          {"mean_error_held_out_pct", percent(held_out.mean)},
                          {"p90_error_held_out_pct", percent(held_out.p90)}};
    return gemm_group(provenance, recipe.filter.libraries.names.at(index), validation.libraries.fits[index],
                      {.fitted = "fitted to " + table + ", " + rows,
                       .prior = "fit to all libraries of " + table + " with the same tiles: " + rows +
                                " hardly determines it",
                       .file = "",
                       .date = ""});
}

/// Converts the fit to the device's number of compute units if the table is
/// from a sibling with another number.
GemmFit deployed(const GemmRecipe& recipe, GemmFit fit) {
    GemmParameters& parameters = fit.parameters;
    if (recipe.deployed.units > 0) {
        parameters.peak_rate = parameters.peak_rate * (recipe.deployed.units / parameters.compute_units);
        parameters.compute_units = recipe.deployed.units;
    }
    return fit;
}

Json to_json(const GemmRecipe& recipe, const GemmValidation& validation, const std::string& date) {
    const std::string table = published_table(recipe.file);
    Json group = gemm_group(
        provenance(recipe, validation, date), recipe.kernel_library, deployed(recipe, validation.fit),
        {.fitted = "fitted to " + table +
                   (recipe.more_tables.empty() ? "" : " and the other tables of the provenance"),
         .prior = "prior of configs/calibrations/recipes (estimate): the table "
                  "hardly determines it",
         .file = "",
         .date = ""});
    if (recipe.deployed.launch > Seconds())
        group["launch_us"] =
            parameter_entry(to_microseconds(recipe.deployed.launch), recipe.deployed.launch_source);
    return group;
}

Json derived(const GemmDerivation& derivation, const Json& from, const std::string& date) {
    const std::string origin = derivation.from.device + " " + name_of(derivation.from.dtype);
    Json group = from;
    group["provenance"] = {{"derived_from", origin},
                           {"rate_ratio", rounded(derivation.rates.ratio())},
                           {"memory_ratio", rounded(derivation.memory_rates.ratio())},
                           {"reason", derivation.reason},
                           {"date", date},
                           {"note", derivation.note}};
    if (!derivation.kernel_library.empty()) group["library"] = derivation.kernel_library;
    const auto scale = [&](const std::string& key, double ratio) {
        group[key]["value"] = rounded(group[key]["value"].get<double>() * ratio);
        group[key]["standard_error"] = rounded(group[key]["standard_error"].get<double>() * ratio);
        group[key]["source"] = "derived from " + origin + ": " + derivation.reason;
    };
    for (const Field<GemmParameters>& field : GemmParameters::fields())
        if (group.contains(field.key)) scale(std::string(field.key), 1.0);
    scale("peak_TFLOPS", derivation.rates.ratio());
    scale("hbm_GBps", derivation.memory_rates.ratio());
    scale("unit_bandwidth_GBps", derivation.memory_rates.ratio());
    for (auto& tile : group["tiles"].items()) tile.value()["source"] = "derived from " + origin;
    return group;
}

GemmValidation fit_recipe(const GemmRecipe& recipe, const std::filesystem::path& data) {
    std::vector<GemmMeasurement> anchors;
    for (const GemmAnchor& anchor : recipe.anchors) anchors.push_back(anchor.measurement(recipe.dtype));
    return fit_and_validate(gemm_rows(recipe, data), recipe.prior, anchors, recipe.start_of_libraries);
}

}  // namespace

std::vector<GemmMeasurement> gemm_rows(const GemmRecipe& recipe, const std::filesystem::path& data) {
    std::vector<GemmMeasurement> rows = read_gemm_table(data / recipe.file, recipe.filter);
    for (const GemmTable& table : recipe.more_tables) {
        const std::vector<GemmMeasurement> more = read_gemm_table(data / table.file, table.filter);
        rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
}

std::vector<std::string> table_devices(const GemmRecipes& recipes) {
    std::set<std::string> known;
    for (const GemmRecipe& recipe : recipes.tables)
        if (!recipe.check_only) known.insert(recipe.device);
    for (const GemmDerivation& derivation : recipes.derivations) known.insert(derivation.device);
    return {known.begin(), known.end()};
}

std::vector<GemmCalibrationResult> write_gemm_calibrations(const GemmRecipes& recipes,
                                                           const std::filesystem::path& data,
                                                           const std::filesystem::path& folder,
                                                           const std::string& date,
                                                           const std::vector<std::string>& devices) {
    const std::vector<std::string> known = table_devices(recipes);
    for (const std::string& device : devices)
        if (!contains(known, device))
            throw UserError("no GEMM recipe for device '" + device + "'" + suggestion(device, known));

    // A dtype that is derived from another device needs the other device's fit too.
    std::set<std::string> wanted(devices.begin(), devices.end()), needed;
    if (wanted.empty()) wanted.insert(known.begin(), known.end());
    needed = wanted;
    for (const GemmDerivation& derivation : recipes.derivations)
        if (wanted.contains(derivation.device)) needed.insert(derivation.from.device);

    std::vector<GemmCalibrationResult> results;
    std::map<std::string, Json> groups, libraries;
    for (const GemmRecipe& recipe : recipes.tables) {
        if (recipe.check_only || !needed.contains(recipe.device)) continue;
        results.push_back({recipe.device, recipe.dtype, fit_recipe(recipe, data)});
        const GemmValidation& validation = results.back().validation;
        auto& of =
            recipe.of_library.empty() ? groups[recipe.device] : libraries[recipe.device][recipe.of_library];
        of[name_of(recipe.dtype)] = to_json(recipe, validation, date);
        for (std::size_t i = 0; i < validation.libraries.fits.size(); ++i)
            libraries[recipe.device][recipe.filter.libraries.texts[i]][name_of(recipe.dtype)] =
                library_json(recipe, validation, i, date);
    }
    for (const GemmDerivation& derivation : recipes.derivations) {
        if (!needed.contains(derivation.device)) continue;
        auto& of = derivation.of_library.empty() ? groups[derivation.device]
                                                 : libraries[derivation.device][derivation.of_library];
        of[name_of(derivation.dtype)] =
            derived(derivation, groups.at(derivation.from.device).at(name_of(derivation.from.dtype)), date);
    }

    for (const std::string& device : wanted) {
        Json written{{"gemm", groups.at(device)}};
        if (libraries.contains(device)) {
            const auto chosen = recipes.default_libraries.find(device);
            written["gemm_library"] =
                chosen == recipes.default_libraries.end() ? mixed_libraries : chosen->second;
            written["gemm_libraries"] = libraries.at(device);
        }
        write_groups(folder, device, written);
    }
    return results;
}

std::vector<GemmTableCheck> check_public_tables(const GemmRecipes& recipes, const std::string& device,
                                                const std::map<DType, GemmParameters>& parameters,
                                                const std::filesystem::path& data) {
    std::vector<GemmTableCheck> checks;
    for (const GemmRecipe& recipe : recipes.tables)
        if (recipe.check_only && recipe.device == device)
            checks.push_back({recipe.dtype, recipe.file, recipe.note,
                              gemm_errors(gemm_rows(recipe, data), parameters.at(recipe.dtype))});
    return checks;
}

void write_groups(const std::filesystem::path& folder, const std::string& device, const Json& groups) {
    require_file_name(device, "the name of a device");
    const std::filesystem::path path = folder / (device + ".json");
    Json file{{"schema", newest_version("calibration")}, {"device", device}};
    if (std::filesystem::exists(path)) file = read_config_file(path, "calibration").json;
    for (const auto& item : groups.items()) file[item.key()] = item.value();
    write_file_atomically(path, file.dump(2) + "\n");
}

}  // namespace overlap
