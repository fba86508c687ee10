#include "sim/run/remarks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "models/gemm_libraries.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

const std::string roofline_model = "gemm_roofline";

/// A value that no cost model and no rule of the engine reads.
struct Informational {
    std::string key;      ///< or its beginning, up to a dot
    std::string instead;  ///< the values that are read
};

const std::array<Informational, 8>& informational_values() {
    static const std::array<Informational, 8> values{{
        {"device.peak_clock_GHz", "rates of GEMMs are device.gemm.TYPE.peak_TFLOPS"},
        {"device.peak_TFLOPS",
         "rates of GEMMs are device.gemm.TYPE.peak_TFLOPS, but by cost model gemm_roofline"},
        {"device.hbm_peak_GBps", "achieved rates are device.hbm_GBps and device.gemm.TYPE.hbm_GBps"},
        {"device.board_power_W",
         "it only splits off the energy above the limit; long GEMMs slow down by "
         "device.gemm.TYPE.sustained_slowdown"},
        {"device.hbm_capacity_GB", "it only refuses operands that do not fit"},
        {"device.description", "it is text"},
        {"device.collective_library.name", "it is text"},
        {"topology.description", "it is text"},
    }};
    return values;
}

const Informational* informational(const std::string& key, bool roofline) {
    for (const Informational& value : informational_values()) {
        if (roofline && value.key == "device.peak_TFLOPS") continue;
        if (key == value.key || key.starts_with(value.key + ".")) return &value;
    }
    return nullptr;
}

std::string as_given(const Json& value) {
    return value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string about(const ChangedValue& change) {
    return "what-if " + change.key + "=" + as_given(change.given) + ": ";
}

bool looks_like_a_factor(const ChangedValue& change) {
    if (!change.given.is_number() || !change.before.is_number()) return false;
    const auto before = change.before.get<double>();
    const double ratio = change.after.get<double>() / before;
    const bool surprising = ratio > surprising_factor || ratio < 1.0 / surprising_factor;
    return before != 1 && std::isfinite(ratio) && ratio > 0 && surprising;
}

const Json* parameter(const Json& json, const std::string& key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_object() && found->contains("value") ? &(*found)["value"]
                                                                                 : nullptr;
}

/// Counterparts of a changed value that stay unchanged: for device.compute_units
/// "device.gemm.bf16.compute_units", and vice versa. The device and its fitted GEMMs both have such values.
std::vector<std::string> counterparts_that_stay(const ChangedValue& change,
                                                const std::set<std::string>& changed, const Json& device,
                                                const Json& calibration, const std::vector<DType>& types) {
    std::vector<std::string> stay;
    const std::string name = change.key.substr(change.key.rfind('.') + 1);
    const auto keep = [&](const std::string& key, const Json* value) {
        if (value != nullptr && !changed.contains(key)) stay.push_back(key + " = " + value->dump());
    };
    for (const DType dtype : types) {
        const Json::json_pointer group = Json::json_pointer("/gemm") / name_of(dtype);
        if (!calibration.contains(group)) continue;
        const std::string fitted = "device.gemm." + name_of(dtype) + ".";
        if (change.key == "device." + name) keep(fitted + name, parameter(calibration.at(group), name));
        if (change.key != fitted + name) continue;
        keep("device." + name, parameter(device, name));
        if (name == "compute_units")  // then the peak rate, of all units together, stays too
            keep(fitted + "peak_TFLOPS", parameter(calibration.at(group), "peak_TFLOPS"));
    }
    return stay;
}

std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
    return text;
}

/// Whether the run takes as long without one change of its what-if.
bool changes_nothing(RunConfig config, const std::string& key, Seconds makespan, const ConfigFolder& folder) {
    config.what_if.erase(key);
    try {
        return predict(resolve(config, folder)).makespan == makespan;
    } catch (const UserError&) {  // the rest of the config needs the change
        return false;
    }
}

std::vector<DType> types_of_gemms(const Workload& workload) {
    if (const Pair* pair = workload.pair()) return {pair->gemm.dtype};
    std::set<DType> types;
    for (const Operator& op : std::get<std::vector<Operator>>(workload.content))
        if (const auto* shape = std::get_if<GemmShape>(&op.work)) types.insert(shape->dtype);
    return {types.begin(), types.end()};
}

bool uses_roofline(const Scenario& scenario) {
    const auto& models = scenario.cost_models;
    return std::find(models.begin(), models.end(), roofline_model) != models.end();
}

}  // namespace

std::vector<std::string> notes_of_changes(const std::vector<ChangedValue>& changes, const Json& device,
                                          const Json& calibration, const std::vector<DType>& types,
                                          bool roofline) {
    std::set<std::string> changed;
    for (const ChangedValue& change : changes) changed.insert(change.key);
    std::vector<std::string> notes;
    for (const ChangedValue& change : changes) {
        if (looks_like_a_factor(change))
            notes.push_back(about(change) + "the file says " + change.before.dump() + ", more than " +
                            std::to_string(surprising_factor) + " times off; did you mean \"" +
                            as_given(change.given) + "x\"?");
        if (const Informational* value = informational(change.key, roofline)) {
            notes.push_back(about(change) + "is information only, no price reads it; " + value->instead);
            continue;
        }
        const auto stay = counterparts_that_stay(change, changed, device, calibration, types);
        if (!stay.empty()) notes.push_back(about(change) + "does not change " + joined(stay));
    }
    return notes;
}

std::string library_of_gemms(const ConfigFolder& folder, const std::string& device, DType dtype) {
    return library_of_gemms(read_config_file(folder.find("calibrations", device), "calibration"), dtype)
        .value_or("");
}

Remarks Remarker::on(const RunConfig& config, const Scenario& scenario, Seconds makespan) {
    return {library(config, scenario), notes(config, scenario, makespan)};
}

Remarker::FilePtr Remarker::file(const std::string& kind, const std::string& name) {
    return files_.get(kind + '\n' + name, [&] {
        return std::make_shared<const ConfigFile>(read_config_file(
            folder_.find(kind, name), kind == "topologies" ? "topology" : kind.substr(0, kind.size() - 1)));
    });
}

std::string Remarker::library(const RunConfig& config, const Scenario& scenario) {
    if (uses_roofline(scenario)) return "";
    const std::string& name = scenario.machine->topology.device().name;
    FilePtr calibration = file("calibrations", name);
    if (!config.what_if.empty()) {
        ConfigFile device = *file("devices", name), changed = *calibration;
        WhatIf(config.what_if, config.origin).change("device", std::array{&device, &changed});
        calibration = std::make_shared<const ConfigFile>(std::move(changed));
    }
    std::set<std::string> names;
    std::vector<std::string> by_type;
    for (const DType dtype : types_of_gemms(scenario.workload)) {
        const std::string library = library_of_gemms(*calibration, dtype).value_or("");
        names.insert(library);
        by_type.push_back(name_of(dtype) + ": " + library);
    }
    if (names.empty()) return "";
    return names.size() == 1 ? *names.begin() : joined(by_type);
}

std::vector<ChangedValue> Remarker::changes_of(const RunConfig& config, const Scenario& scenario) {
    const std::string& name = scenario.machine->topology.device().name;
    ConfigFile topology = *file("topologies", config.topology), device = *file("devices", name),
               calibration = *file("calibrations", name);
    std::vector<ChangedValue> changes = changed_values(config.what_if, "topology", std::array{&topology});
    for (ChangedValue& change : changed_values(config.what_if, "device", std::array{&device, &calibration}))
        changes.push_back(std::move(change));
    return changes;
}

std::vector<std::string> Remarker::notes_of_values(const RunConfig& config, const Scenario& scenario) {
    if (config.what_if.empty()) return {};
    const std::string& name = scenario.machine->topology.device().name;
    return notes_of_changes(changes_of(config, scenario), file("devices", name)->json,
                            file("calibrations", name)->json, types_of_gemms(scenario.workload),
                            uses_roofline(scenario));
}

std::vector<std::string> Remarker::notes(const RunConfig& config, const Scenario& scenario,
                                         Seconds makespan) {
    if (config.what_if.empty()) return {};
    std::vector<std::string> notes = notes_of_values(config, scenario);
    for (const ChangedValue& change : changes_of(config, scenario))
        if (informational(change.key, uses_roofline(scenario)) == nullptr &&
            changes_nothing(config, change.key, makespan, folder_))
            notes.push_back(about(change) + "changes nothing in this run's makespan");
    return notes;
}

}  // namespace overlap
