#include "sim/calibrate/fits/parameter_json.hpp"

#include <cmath>

#include "sim/core/fields.hpp"

namespace overlap {
Json parameter_entry(const std::string& key, const FittedValue& fitted, const FitOrigin& origin) {
    const std::string& source = fitted.prior_share > mostly_prior ? origin.prior : origin.fitted;
    Json result{{"value", rounded(fitted.value)}};
    if (!origin.file.empty()) result["unit"] = std::string(unit_of(key).name);
    result["standard_error"] = rounded(fitted.standard_error);
    if (!origin.file.empty()) {
        result["residual_pct"] = percent(fitted.residual);
        result["file"] = origin.file;
        result["date"] = origin.date;
    }
    result["source"] = source;
    return result;
}

double rounded(double value) {
    if (value == 0) return 0;
    const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 5);
    return unit < 1 ? std::round(value / unit) / std::round(1 / unit) : std::round(value / unit) * unit;
}

double percent(double share) {
    return std::round(share * 1e4) / 1e2;
}

Json classes_json(std::span<const ErrorClass> classes) {
    Json json = Json::object();
    for (const ErrorClass& one : classes)
        if (one.count > 0)
            json[one.name] = {{"count", one.count},
                              {"mean_error_fitted_pct", percent(one.fitted.mean)},
                              {"mean_error_held_out_pct", percent(one.held_out.mean)},
                              {"p90_error_held_out_pct", percent(one.held_out.p90)},
                              {"bias_held_out_pct", percent(one.held_out.bias)}};
    return json;
}

Json parameter_entry(double value, const std::string& source) {
    return {{"value", rounded(value)}, {"source", source}};
}

}  // namespace overlap
