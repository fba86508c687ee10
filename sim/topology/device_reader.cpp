#include "sim/topology/device.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/file_version.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/topology/derived_values.hpp"
#include "sim/topology/device_structure.hpp"

namespace overlap {
namespace {

/// Reads an object of a device file, however many of its values are missing or wrong; keeps all errors.
class DeviceReader {
public:
    DeviceReader(ConfigObject& config, KeptErrors& errors) : config_(config), errors_(errors) {}

    template <class T>
    void fields(T& to) {
        read_fields(config_, to, errors_);
    }
    void text(const std::string& key, const char*, std::string& to) {
        errors_.keep([&] { to = config_.text(key); });
    }
    void name_if_any(const std::string& key, const char* doc, std::string& to) {
        if (config_.has(key)) text(key, doc, to);
    }
    template <class Set>
    void number(const std::string& key, const std::string&, Range range, const char*, Set&& set) {
        if (config_.has(key)) errors_.keep([&] { set(config_.sourced(key, range)); });
    }
    template <class Body>
    void group(const std::string& key, const char*, Body&& body) {
        errors_.keep([&] {
            ConfigObject object = config_.object(key);
            DeviceReader inside(object, errors_);
            body(inside);
            object.finish(errors_);
        });
    }
    template <class Body>
    void group_if_any(const std::string& key, const char* doc, Body&& body) {
        if (config_.has(key)) group(key, doc, body);
    }
    void calibrated(std::size_t group, DeviceSpec& device) {
        if (may_be_left_out(group) && !config_.has(calibrated_groups[group])) return;
        this->group(calibrated_groups[group], "",
                    [&](DeviceReader& at) { visit_calibrated(at, group, device); });
    }
    void provenance() {
        if (config_.has("provenance")) config_.object("provenance");
    }
    /// Calls `body` for each key, which must be one of `names`.
    template <std::size_t N, class Body>
    void each(const std::array<std::string, N>& names, const std::string& what, Body&& body) {
        for (const std::string& key : config_.keys())
            if (contains(names, key))
                body(*this, key);
            else
                refuse(key, "is no " + what + suggestion(key, names));
    }
    /// An object whose keys are whole numbers.
    template <class Body>
    void counted(const std::string& key, const char* doc, bool required, std::int64_t least,
                 std::int64_t most, const std::string& what, Body&& body) {
        if (!required && !config_.has(key)) return;
        group(key, doc, [&](DeviceReader& at) {
            for (const std::string& name : at.config_.keys())
                if (const auto count = parsed<int>(name).value_or(0); count >= least && count <= most)
                    body(at, name, count);
                else
                    at.refuse(name, "is no " + what + " from " + std::to_string(least) + " to " +
                                        std::to_string(most));
        });
    }
    void times(std::vector<std::pair<Bytes, Seconds>>& to, const Key& error) {
        if (config_.has(error.key)) read_value(config_, error, 0);
        const std::vector<double> bytes = config_.numbers("bytes", {1, 1e15}),
                                  us = config_.numbers("us", {1e-3, 1e9});
        if (bytes.empty() || bytes.size() != us.size() ||
            std::ranges::adjacent_find(bytes, std::greater_equal()) != bytes.end())
            config_.fail("bytes", "must be rising numbers, one for each value of 'us'");
        for (std::size_t i = 0; i < bytes.size(); ++i) to.emplace_back(Bytes(bytes[i]), microseconds(us[i]));
    }

private:
    /// Keeps an error at a key that is there.
    void refuse(const std::string& key, const std::string& message) {
        config_.raw(key);
        errors_.keep([&] { config_.fail(key, message); });
    }

    ConfigObject& config_;
    KeptErrors& errors_;
};

void overlay(ConfigObject& config, ConfigObject& calibration, const std::string& device) {
    calibration.version(newest_version("calibration"));
    if (const std::string of = calibration.text("device"); !device.empty() && of != device)
        calibration.fail("device", "is '" + of + "', expected '" + device + "'");
    // Read by read_gemm_calibration and read_kernel_calibration
    for (const std::string key : {"gemm", "gemm_library", "gemm_libraries", "attention_library",
                                  "grouped_library", "validation", "measured_on"})
        if (calibration.has(key)) calibration.raw(key);
    for (const std::string& key : kernel_groups)
        if (calibration.has(key)) calibration.raw(key);
    if (calibration.has("measured_gemms")) calibration.object("measured_gemms");  // read_gemm_times
    config.overlay(std::move(calibration));
}

/// Throws all errors of the file as one.
DeviceSpec read(ConfigObject config, ConfigObject* calibration) {
    DeviceSpec device;
    KeptErrors errors;
    DeviceReader at(config, errors);
    errors.keep([&] { config.version(newest_version("device")); });
    at.text("name", "", device.name);
    if (calibration != nullptr) overlay(config, *calibration, device.name);
    at.text("description", "", device.description);
    visit_device(at, device);
    config.finish(errors);
    errors.throw_all(config.file());
    return device;
}

}  // namespace

DeviceSpec::DeviceSpec() = default;

DeviceSpec read_device(const std::filesystem::path& path) {
    const ConfigFile file = read_config_file(path, "device");
    return read(file.view(), nullptr);
}

DeviceSpec read_device(const std::filesystem::path& path, ConfigObject calibration) {
    const ConfigFile file = read_config_file(path, "device");
    return read(file.view(), &calibration);
}

DeviceSpec read_device(const ConfigFile& device, const ConfigFile* calibration) {
    if (calibration == nullptr) return read(device.view(), nullptr);
    ConfigObject fitted = calibration->view();
    return read(device.view(), &fitted);
}

}  // namespace overlap
