#include "sim/run/machine_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "sim/core/fields.hpp"
#include "sim/core/ranges.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

/// Keys of the files of a device that a run can depend on.
class Relevant {
public:
    explicit Relevant(const Scenario& scenario, const Json& calibration)
        : roofline_(contains(scenario.settings.cost_models, "gemm_roofline")) {
        const auto library = calibration.value("gemm_library", std::string("mixed"));
        for (const DType type : types_of_gemms(scenario.workload)) {
            const bool own =
                calibration.contains(Json::json_pointer("/gemm_libraries/" + library + "/" + name_of(type)));
            peaks_.insert("peak_TFLOPS." + name_of(type));
            gemms_.push_back((own ? "gemm_libraries." + library : "gemm") + "." + name_of(type) + ".");
        }
    }

    bool operator()(const std::string& key) const {
        for (const char* part : {"board_power_W", "hbm_capacity_GB", "hbm_peak_GBps", "energy."})
            if (key.starts_with(part)) return false;
        if (key.starts_with("peak_TFLOPS.")) return roofline_ && peaks_.contains(key);
        if (!key.starts_with("gemm")) return true;
        if (key.ends_with(".compute_units")) return false;  // moves with the device's
        return std::ranges::any_of(gemms_, [&](const std::string& gemm) { return key.starts_with(gemm); });
    }

private:
    bool roofline_;
    std::set<std::string> peaks_;
    std::vector<std::string> gemms_;  ///< groups of parameters of the kernels that run, with a dot at the end
};

const std::string of_device = "device.";
constexpr double visible = 1e-3;  ///< smallest change of a makespan that counts, as a share

/// The runs of one config with numbers of the machine changed.
class Raised {
public:
    Raised(const RunConfig& config, const std::string& key, double value, const ConfigFolder& folder)
        : config_(config), key_(key), more_(2 * value), resolver_(folder) {}

    using Keys = std::span<const MachineNumber>;

    /// Whether the run is faster with more of the key, where `keys` have four times their values.
    bool helps(std::vector<MachineNumber> keys, const Keys& also) {
        append(keys, also);
        for (const MachineNumber& one : keys) config_.what_if[one.key] = 4 * one.value();
        const bool is_faster = helps();
        for (const MachineNumber& one : keys) config_.what_if.erase(one.key);
        return is_faster;
    }

    bool is_faster_than(Seconds makespan) {
        const Json given = config_.what_if[key_];
        config_.what_if[key_] = more_;
        const bool is_faster = makespan_of(resolver_.resolve_for_numbers(config_)) < (1 - visible) * makespan;
        config_.what_if[key_] = given;
        return is_faster;
    }

    /// The fewest of `keys`, beside `kept`, with which more of the key helps; all of them together do.
    std::vector<MachineNumber> fewest(const Keys& keys, const std::vector<MachineNumber>& kept) {
        if (keys.size() < 2) return {keys.begin(), keys.end()};
        const Keys first = keys.first(keys.size() / 2), second = keys.subspan(first.size());
        for (const Keys& half : {first, second})
            if (helps(kept, half)) return fewest(half, kept);
        std::vector<MachineNumber> beside = kept;
        append(beside, second);
        std::vector<MachineNumber> found = fewest(first, beside);
        beside = kept;
        append(beside, found);
        append(found, fewest(second, beside));
        return found;
    }

private:
    bool helps() {
        try {
            return is_faster_than(makespan_of(resolver_.resolve_for_numbers(config_)));
        } catch (const UserError&) {  // a value out of range
            return false;
        }
    }

    RunConfig config_;
    std::string key_;
    double more_;
    Resolver resolver_;
};

}  // namespace

std::vector<DType> types_of_gemms(const Workload& workload) {
    std::set<DType> types;
    for (const GemmShape& gemm : workload.gemms()) types.insert(gemm.dtype);
    return {types.begin(), types.end()};
}

std::vector<MachineNumber> numbers_of(MachineFiles files, const Scenario& scenario) {
    std::vector<MachineNumber> numbers;
    for_each_number(files.topology.json, [&](const std::string& key, const Json& parameter) {
        numbers.push_back({"topology." + key, parameter});
    });
    const Relevant relevant(scenario, files.calibration->json);
    for (ConfigFile* file : {&files.device, &*files.calibration})
        for_each_number(file->json, [&](const std::string& key, const Json& parameter) {
            if (relevant(key)) numbers.push_back({of_device + key, parameter});
        });
    return numbers;
}

bool is_rate(const std::string& key) {
    const std::string name = key.substr(key.rfind('.') + 1);
    return contains(std::array<std::string, 2>{"GBps", "TFLOPS"}, unit_of(name).name) ||
           contains(std::array<std::string, 2>{"compute_units", "peer_engines"}, name);
}

std::vector<std::string> limits_of(const RunConfig& config, const std::string& key, double value,
                                   const Scenario& scenario, Seconds makespan, const ConfigFolder& folder) {
    Raised raised(config, key, value, folder);
    try {
        if (!is_rate(key) || raised.is_faster_than(makespan)) return {};
    } catch (const UserError&) {  // twice the value is out of range
        return {};
    }
    std::vector<MachineNumber> rates =
        numbers_of(folder.machine_files(config.topology, WhatIf(config.what_if, config.origin)), scenario);
    std::erase_if(rates, [&](const MachineNumber& one) {
        const bool follows =
            key.starts_with(of_device) && one.key.starts_with(of_device) &&
            moved_factor(one.key.substr(of_device.size()), {{key.substr(of_device.size()), 2}}) != 1;
        return one.key == key || follows || !is_rate(one.key) || one.value() == 0 ||
               config.what_if.contains(one.key);
    });
    // What stands first is named where several would do: single rates before numbers of units.
    std::ranges::stable_partition(rates, [](const MachineNumber& one) { return !is_count(one.key); });
    if (rates.empty() || !raised.helps(rates, {})) return {};
    return mapped(raised.fewest(rates, {}), &MachineNumber::key);
}

}  // namespace overlap
