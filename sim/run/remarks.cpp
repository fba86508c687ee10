#include "sim/run/remarks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <optional>
#include <set>
#include <sstream>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/machine_numbers.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

/// A value that no cost model and no rule of the engine reads.
struct Informational {
    std::string key;      ///< or its beginning, up to a dot
    std::string instead;  ///< the values that are read
};

const std::array<Informational, 6>& informational_values() {
    static const std::array<Informational, 6> values{{
        {"device.board_power_W",
         "in a run from cool GPUs it only splits off the energy above the limit; long GEMMs slow down by "
         "device.gemm.TYPE.sustained_slowdown"},
        {"device.hbm_capacity_GB", "it only refuses operands that do not fit"},
        {"device.description", "it is text"},
        {"device.like", "it only names the device whose calibration is scaled where this one has none"},
        {"device.collective_library.name", "it is text"},
        {"topology.description", "it is text"},
    }};
    return values;
}

const Informational* informational(const std::string& key) {
    for (const Informational& value : informational_values())
        if (key == value.key || key.starts_with(value.key + ".")) return &value;
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

/// Counterparts of a changed value of fitted GEMMs that stay unchanged: for device.gemm.bf16.compute_units
/// "device.compute_units". The device and its fitted GEMMs both have such values.
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
        const std::string fitted = "device.gemm." + name_of(dtype) + ".";
        if (!calibration.contains(group) || change.key != fitted + name) continue;
        keep("device." + name, parameter(device, name));
        if (name == "compute_units")  // then the peak rate, of all units together, stays too
            keep(fitted + "peak_TFLOPS", parameter(calibration.at(group), "peak_TFLOPS"));
    }
    return stay;
}

/// Values that follow `change`, less those of GEMMs that the run does not have.
std::vector<std::string> moved_along(const ChangedValue& change, const std::vector<ChangedValue>& moved,
                                     const std::vector<DType>& types) {
    std::vector<std::string> keys;
    const auto of_others = [&](const std::string& key) {
        return key.starts_with("device.gemm_libraries.") ||
               (key.starts_with("device.gemm.") && std::ranges::none_of(types, [&](DType dtype) {
                    return key.starts_with("device.gemm." + name_of(dtype) + ".");
                }));
    };
    for (const ChangedValue& value : moved) {
        const auto leaders = value.given.get<std::vector<std::string>>();
        if (contains(leaders, change.key) && !of_others(value.key)) keys.push_back(value.key);
    }
    return keys;
}

/// Whether a list has kernels that the group of a calibration (`kernel_groups`) is for.
bool has_kernels(const Workload& workload, const std::string& group) {
    if (workload.pair() != nullptr) return false;
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    return std::ranges::any_of(operators, [&](const Operator& op) {
        if (const auto* gemm = std::get_if<GemmShape>(&op.work))
            return gemm->groups > 1 && group == kernel_groups[2];
        if (const auto* collective = std::get_if<CollectiveWork>(&op.work))
            return collective->exchange.tokens > 0 && group == kernel_groups[3];
        const auto* streaming = std::get_if<StreamingWork>(&op.work);
        return streaming != nullptr && streaming->attention.sequences > 0 &&
               group == kernel_groups[streaming->attention.kind == AttentionKind::decode ? 1 : 0];
    });
}

/// 364.8 of 304 times "1.2x", which became 365; empty if the value is the product itself.
std::string before_rounding(const ChangedValue& change) {
    if (!change.given.is_string() || !change.before.is_number() || !is_count(change.key)) return "";
    const double product = change.before.get<double>() * std::strtod(as_given(change.given).c_str(), nullptr);
    return product == change.after.get<double>() ? "" : Json(product).dump();
}

/// Whether the run takes as long without one change of its what-if.
bool changes_nothing(RunConfig config, const std::string& key, Seconds makespan, const ConfigFolder& folder) {
    config.what_if.erase(key);
    try {
        return makespan_of(resolve(config, folder)) == makespan;
    } catch (const UserError&) {  // the rest of the config needs the change
        return false;
    }
}

/// A note on a run by the default host, if it takes more than 5 % longer or shorter when one thread enqueues for all GPUs.
std::optional<std::string> note_on_host(const RunConfig& config, const Scenario& scenario, Seconds makespan,
                                        const ConfigFolder& folder) {
    constexpr double worth_a_note = 0.05;
    if (!config.host.empty() || scenario.host == nullptr || makespan == Seconds()) return std::nullopt;
    Scenario other = scenario;
    other.host = std::make_shared<const Host>(folder.host(recorded_host));
    const double change = makespan_of(other) / makespan - 1;
    if (std::abs(change) <= worth_a_note) return std::nullopt;
    std::ostringstream note;
    note << "host " << scenario.host->name << ": if one thread enqueues for all GPUs (--host "
         << recorded_host << "), it takes " << std::fixed << std::setprecision(0) << std::abs(100 * change)
         << " % " << (change > 0 ? "longer" : "less");
    return note.str();
}

/// What is odd about a pair's speed-up above 2.
std::optional<std::string> note_on_speedup(const Scenario& scenario, const RunResult& result) {
    constexpr double most_by_overlap = 2;  // two phases side by side take at least half of their sum
    if (scenario.workload.pair() == nullptr || result.baseline.speedup <= most_by_overlap)
        return std::nullopt;
    return "a speed-up above 2 is more than overlap of two phases can give: " + result.baseline.name +
           " is slower than its phases alone, GEMM " + Json(to_microseconds(result.phases.gemm)).dump() +
           " us and this schedule's transfers " + Json(to_microseconds(result.phases.comm)).dump() + " us";
}

}  // namespace

std::vector<std::string> notes_of_changes(const std::vector<ChangedValue>& changes, const Json& device,
                                          const Json& calibration, const std::vector<DType>& types,
                                          const std::vector<ChangedValue>& moved) {
    std::set<std::string> changed;
    for (const ChangedValue& change : changes) changed.insert(change.key);
    std::vector<std::string> notes;
    for (const ChangedValue& change : changes) {
        if (looks_like_a_factor(change))
            notes.push_back(about(change) + "the file says " + change.before.dump() + ", more than " +
                            std::to_string(surprising_factor) + " times off; did you mean \"" +
                            as_given(change.given) + "x\"?");
        if (const Informational* value = informational(change.key)) {
            notes.push_back(about(change) + "is information only, no price reads it; " + value->instead);
            continue;
        }
        const auto stay = counterparts_that_stay(change, changed, device, calibration, types);
        if (!stay.empty()) notes.push_back(about(change) + "does not change " + joined(stay));
        if (const std::string product = before_rounding(change); !product.empty())
            notes.push_back(about(change) + "is " + product + ", rounded to " +
                            Json(std::llround(change.after.get<double>())).dump());
        if (const auto keys = moved_along(change, moved, types); !keys.empty())
            notes.push_back(about(change) + "also moves " + joined(keys));
    }
    return notes;
}

Remarks Remarker::on(const RunConfig& config, const Scenario& scenario, Seconds makespan,
                     const RemarkedResult& result) {
    Remarks remarks = on_what_if(config, scenario, makespan, result);
    if (!scenario.whole_pairs.empty()) remarks.notes.push_back(scenario.whole_pairs);
    if (const Host* host = scenario.host.get(); host != nullptr && !host->device.empty() &&
                                                !knows_device(*host, folder_.machine_files(config.topology)))
        remarks.notes.push_back("host " + in_quotes(host->name) + " has values of other GPUs for launches; " +
                                scenario.machine->topology.device().name + " keeps its own");
    return remarks;
}

std::vector<std::string> Remarker::on_result(const RunConfig& config, const Scenario& scenario,
                                             const RunResult& result) {
    std::vector<std::string> notes;
    if (const auto note = note_on_host(config, scenario, result.makespan, folder_)) notes.push_back(*note);
    if (const auto note = note_on_speedup(scenario, result)) notes.push_back(*note);
    return notes;
}

Remarker::ChangesPtr Remarker::changes_of(const RunConfig& config) {
    return changes_.get(config.topology + '\n' + config.what_if.dump(), [&] {
        Json of_topology = Json::object();  // it may name another device
        for (const auto& item : config.what_if.items())
            if (item.key().starts_with("topology.")) of_topology[item.key()] = item.value();
        auto changes = std::make_shared<Changes>(
            Changes{folder_.machine_files(config.topology, WhatIf(of_topology, config.origin)), {}, {}});
        ConfigFile topology = folder_.machine_files(config.topology).topology,
                   device = changes->before.device, calibration = *changes->before.calibration;
        const std::array files{&device, &calibration};
        changes->given = changed_values(config.what_if, "topology", std::array{&topology});
        for (ChangedValue& change : changed_values(config.what_if, "device", files, is_count))
            changes->given.push_back(std::move(change));
        changes->moved = change_device(WhatIf(config.what_if, config.origin), files);
        return ChangesPtr(std::move(changes));
    });
}

std::vector<std::string> Remarker::notes_of_values(const RunConfig& config, const Scenario& scenario,
                                                   const Json& asked) {
    if (config.what_if.empty()) return {};
    const ChangesPtr changes = changes_of(config);
    std::vector<ChangedValue> moved = changes->moved;
    std::erase_if(moved, [&](const ChangedValue& value) {
        return std::ranges::any_of(kernel_groups, [&](const std::string& group) {
            return value.key.starts_with("device." + group + ".") && !has_kernels(scenario.workload, group);
        });
    });
    std::vector<ChangedValue> given = changes->given;
    std::erase_if(given, [&](const ChangedValue& value) { return !asked.contains(value.key); });
    return notes_of_changes(given, changes->before.device.json, changes->before.calibration->json,
                            types_of_gemms(scenario.workload), moved);
}

Remarks Remarker::on_what_if(const RunConfig& config, const Scenario& scenario, Seconds makespan,
                             const RemarkedResult& result) {
    if (config.what_if.empty()) return {};
    const Json& asked = result.asked.is_null() ? config.what_if : result.asked;
    Remarks remarks{notes_of_values(config, scenario, asked), asked};
    for (const ChangedValue& change : changes_of(config)->given) {
        if (informational(change.key) != nullptr || !asked.contains(change.key)) continue;
        Json others = asked;
        others.erase(change.key);
        const bool nothing = changes_nothing(config, change.key, makespan, folder_) &&
                             (!result.is_same || result.is_same(others));
        std::vector<std::string> limits;
        if (change.after.is_number())
            limits = limits_of(config, change.key, change.after.get<double>(), scenario, makespan, folder_);
        if (!nothing && limits.empty()) continue;
        std::string note = about(change);
        note += nothing ? "changes nothing " + result.place : "more of it changes nothing";
        if (!limits.empty())
            note += ", because " + joined(limits, " and ") + (limits.size() == 1 ? " limits" : " limit");
        remarks.notes.push_back(std::move(note));
    }
    return remarks;
}

}  // namespace overlap
