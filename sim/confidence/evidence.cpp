#include "sim/confidence/evidence.hpp"

#include <algorithm>

#include "models/cost_model.hpp"
#include "models/kernel_calibration.hpp"

namespace overlap {
namespace {

using Pointer = Json::json_pointer;

const Json& at(const Json& json, const std::string& pointer) {
    static const Json none = Json::object();
    const Pointer place(pointer);
    return json.contains(place) ? json.at(place) : none;
}

Basis basis_of(const std::string& source) {
    if (source.starts_with("prior")) return Basis::estimate;
    for (const Basis basis : {Basis::measured, Basis::derived, Basis::estimate})
        if (source.starts_with(basis_names[static_cast<std::size_t>(basis)])) return basis;
    return Basis::published;
}

/// Counts the sources of a device file's values below `json` whose path contains `part`.
void count_sources(const Json& json, const std::string& part, const std::string& path,
                   std::map<Basis, int>& counts) {
    if (!json.is_object()) return;
    if (json.contains("value") && json.contains("source")) {
        if (path.find(part) != std::string::npos && json["source"].is_string())
            ++counts[basis_of(json["source"].get<std::string>())];
        return;
    }
    for (const auto& [key, value] : json.items()) count_sources(value, part, path + '/' + key, counts);
}

Evidence from_sources(const Json& group, const std::string& part = "") {
    std::map<Basis, int> counts;
    count_sources(group, part, "", counts);
    Evidence evidence;
    int most = 0;
    for (const auto& [basis, count] : counts) {
        evidence.values += count;
        if (count >= most) evidence.basis = basis;  // of equally many the weaker one
        most = std::max(most, count);
    }
    if (const auto found = counts.find(Basis::estimate); found != counts.end())
        evidence.estimates = found->second;
    return evidence;
}

std::optional<double> error_in(const Json& errors, const std::string& key) {
    if (!errors.contains(key) || !errors[key].is_number()) return std::nullopt;
    return errors[key].get<double>() / 100;
}

/// A fit of a calibrated group, or the sources of the device file where `problem` was not fitted.
Evidence fitted_or(const Json& group, const std::string& problem, const std::string& of_class,
                   const Evidence& otherwise) {
    const Json& provenance = group.contains("provenance") ? group["provenance"] : group;
    if (!provenance.contains(problem)) return otherwise;
    const Json& fit = provenance[problem];
    Evidence evidence{.basis = Basis::fitted, .rows = fit.value("rows_fitted", 0)};
    if (fit.contains("classes") && fit["classes"].contains(of_class))
        evidence.error = error_in(fit["classes"][of_class], "mean_error_held_out_pct");
    return evidence;
}

/// Counts the values of a fit, and those of them that rest on priors. Values that no fit moves have no standard error.
void count_fitted(const Json& group, Evidence& evidence) {
    for (const auto& [key, value] : group.items()) {
        if (key == "provenance" || !value.is_object()) continue;
        if (!value.contains("value")) {
            count_fitted(value, evidence);
        } else if (value.contains("standard_error")) {
            ++evidence.values;
            evidence.estimates += !value.value("source", "").starts_with("fitted");
        }
    }
}

Evidence of_gemms(const Json& group, bool library_chosen) {
    Evidence evidence;
    const Json& provenance = at(group, "/provenance");
    if (provenance.contains("derived_from")) {
        evidence.basis = Basis::derived;
        return evidence;
    }
    evidence.rows = provenance.value("rows_fitted", 0);
    count_fitted(group, evidence);
    const Json& known = library_chosen ? at(provenance, "/library_known") : provenance;
    const Json& judged = known.empty() ? provenance : known;
    for (const std::string key : {"mean_error_cross_validated_pct", "mean_error_held_out_pct"})
        if (!evidence.error) evidence.error = error_in(judged, key);
    const Json& classes = at(provenance, "/classes");
    if (!evidence.error && !classes.empty())
        evidence.error = error_in(classes.begin().value(), "mean_error_held_out_pct");
    if (evidence.rows > 0 || evidence.error) evidence.basis = Basis::fitted;
    return evidence;
}

std::map<DType, Evidence> of_all_gemms(const Json& calibration) {
    std::map<DType, Evidence> all;
    const std::string chosen = calibration.value("gemm_library", "");
    const Json& of_library = at(calibration, "/gemm_libraries/" + chosen);
    for (std::size_t type = 0; type < dtype_names.size(); ++type) {
        const std::string& name = dtype_names[type];
        const bool apart = !chosen.empty() && of_library.contains(name);
        const Json& group = apart ? of_library[name] : at(calibration, "/gemm/" + name);
        if (!group.empty()) all[static_cast<DType>(type)] = of_gemms(group, apart);
    }
    return all;
}

std::map<std::string, Evidence> of_kernels(const Json& calibration) {
    std::map<std::string, Evidence> all;
    for (const std::string& group : kernel_groups)
        for (const auto& [format, fit] : at(calibration, "/" + group).items())
            all[group + "/" + format] = of_gemms(fit, false);
    return all;
}

/// Lines and tables of collectives, by their place in `library`.
void add_collectives(const Json& library, const std::string& place, std::map<std::string, Evidence>& all) {
    for (const auto& [key, value] : library.items()) {
        if (!value.is_object() || value.contains("value")) continue;
        const std::string here = place + "/" + key;
        Evidence evidence;
        if (value.contains("bytes"))
            evidence.basis = basis_of(value.value("source", ""));
        else
            evidence = from_sources(value.contains("latency_us") ? Json{{"at_once", value["latency_us"]},
                                                                        {"rate", at(value, "/bus_GBps")}}
                                                                 : value);
        evidence.error = error_in(value, "error_pct");
        if (evidence.values > 0 || value.contains("bytes")) all[here] = evidence;
        add_collectives(value, here, all);
    }
}

std::optional<SchedulesMeasured> measured_errors(const Json& calibration, const std::string& of) {
    const Json& found = at(calibration, "/validation/" + of);
    if (found.empty()) return std::nullopt;
    const std::string machine = at(calibration, "/validation/provenance").value("machine", "");
    return SchedulesMeasured{found.value("cases", 0), found.value("mean_error_pct", 0.0) / 100,
                             found.value("p90_error_pct", 0.0) / 100, found.value("machine", machine)};
}

}  // namespace

MachineEvidence evidence_of(const Json& device, const Json& calibration) {
    MachineEvidence all;
    all.gemm = of_all_gemms(calibration);
    all.kernels = of_kernels(calibration);
    const auto fit = [&](const std::string& group, const std::string& problem, const std::string& of_class,
                         const std::string& part = "") {
        return fitted_or(at(calibration, "/" + group), problem, of_class,
                         from_sources(at(device, "/" + group), part));
    };
    all.dma = fit("dma", "DMA copies", "DMA copy >= 1 MiB");
    all.small_dma = fit("dma", "DMA copies", "DMA copy < 1 MiB");
    all.copy_kernels = fit("copy_kernel", "kernel copies", "kernel copy >= 1 MiB");
    add_collectives(at(device, "/collective_library"), "", all.collectives);
    all.beside_dma = fit("interference", "interference", "work beside copies", "dma");
    all.beside_copy_kernels = fit("interference", "interference", "work beside copies", "copy_kernels");
    all.beside_library = fit("interference", "library beside GEMMs", "GEMM beside the library", "library");
    all.collective_beside_gemms = fit("interference", "library beside GEMMs", "library beside a GEMM",
                                      "collectives_slowed_beside_gemms");
    all.schedules = measured_errors(calibration, "schedules");
    all.layers = measured_errors(calibration, "layers");
    return all;
}

const MachineEvidence& evidence_of(const Machine& machine) {
    static const MachineEvidence none;
    return machine.evidence == nullptr ? none : *machine.evidence;
}

Evidence evidence_of_host(const Json& host) {
    Evidence evidence = from_sources(host, "_us");
    evidence.error = error_in(host, "error_pct");
    return evidence;
}

}  // namespace overlap
