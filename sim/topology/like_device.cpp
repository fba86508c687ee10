#include "sim/topology/like_device.hpp"
#include "sim/core/file_version.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "sim/core/dtype.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> platforms{"AMD", "NVIDIA"};

Factors numbers_of(const Json& device) {
    Factors numbers;
    Json copy = device;
    for_each_number(copy, [&](const std::string& key, const Json& parameter) {
        numbers[key] = parameter["value"].get<double>();
    });
    return numbers;
}

double distance(const Factors& wanted, const Factors& has) {
    double sum = 0;
    for (const auto& [key, value] : wanted) {
        const auto found = has.find(key);
        if (found != has.end() && found->second > 0 && value > 0)
            sum += std::abs(std::log(value / found->second));
    }
    return sum;
}

std::string platform_of(const Json& device) {
    const auto text = device.contains("description") && device["description"].is_string()
                          ? device["description"].get<std::string>()
                          : std::string();
    for (const char* platform : platforms)
        if (text.find(platform) != std::string::npos) return platform;
    return "";
}

/// What identifies a device's speed.
Factors identity_of(const Factors& numbers) {
    Factors some;
    for (const auto& [key, value] : numbers)
        if (key == "compute_units" || key == "peak_clock_GHz" || key.starts_with("peak_TFLOPS.") ||
            key == "hbm_peak_GBps")
            some[key] = value;
    return some;
}

std::string text_or_empty(const Json& json, const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>()
                                                                           : "";
}

/// The calibrated device that `device` names, or the nearest one.
std::string like_of(const ConfigFile& device, const fs::path& devices, const fs::path& calibrations) {
    const std::string like = text_or_empty(device.json, "like");
    if (like.empty())
        return nearest_device(identity_of(numbers_of(device.json)), platform_of(device.json), devices,
                              calibrations);
    const bool is_name = like.find('/') == std::string::npos;
    if (is_name && fs::exists(devices / (like + ".json")) && fs::exists(calibrations / (like + ".json")))
        return like;
    std::vector<std::string> known;
    for (const auto& entry : fs::directory_iterator(calibrations))
        known.push_back(entry.path().stem().string());
    std::ranges::sort(known);
    throw UserError(one_line(device.name + ": /like: is " + in_quotes(like) + ", no calibrated device" +
                             suggestion(like, known)));
}

/// Parameters of `like` in the group of name `prefix` ("gemm.bf16"), by `factors`, as an estimate.
Json scaled_group(Json group, const std::string& prefix, const Factors& factors, const std::string& like) {
    for_each_number(group, [&](const std::string& key, Json& parameter) {
        const std::string full = prefix + "." + key;
        const double factor = moved_factor(full, factors);
        parameter = {{"value", six_digits(scaled(full, parameter["value"].get<double>(), factor))},
                     {"source", "estimate: " + value_of(like, factor)}};
    });
    return group;
}

Factors factors_between(const Factors& own, const Factors& of_like) {
    Factors factors;
    for (const auto& [key, value] : own)
        if (const auto found = of_like.find(key); found != of_like.end() && found->second > 0)
            factors[key] = value / found->second;
    return factors;
}

}  // namespace

Json scaled_kernels(const Json& fitted, const Json& like_device, const Json& device) {
    const std::string like = text_or_empty(like_device, "name");
    const Factors own = numbers_of(device), factors = factors_between(own, numbers_of(like_device));
    Json scaled = Json::object();
    for (const std::string& group : kernel_groups) {
        if (!fitted.contains(group)) continue;
        for (const auto& [format, fit] : fitted[group].items()) {
            if (!own.contains("peak_TFLOPS." + format.substr(0, format.find('_')))) continue;
            Json& one = scaled[group][format] = scaled_group(fit, group + "." + format, factors, like);
            one["provenance"] = {{"derived_from", like}};
        }
    }
    return scaled;
}

double six_digits(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", value);
    return std::strtod(text.data(), nullptr);
}

std::string value_of(const std::string& device, double factor) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), " x %.4g", factor);
    return "value of " + device + (factor == 1 ? "" : text.data());
}

std::string nearest_device(const Factors& numbers, const std::string& platform, const fs::path& devices,
                           const fs::path& calibrations, bool measured) {
    std::string best;
    double least = std::numeric_limits<double>::max();
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(devices))
        if (fs::exists(calibrations / entry.path().filename())) files.push_back(entry.path());
    std::ranges::sort(files);
    for (const fs::path& file : files) {
        const Json json = read_json_file(file);
        const std::string of = platform_of(json);
        if (of.empty() || (!platform.empty() && of != platform)) continue;
        if (measured && !read_json_file(calibrations / file.filename()).contains("measured_gemms")) continue;
        const double far = distance(numbers, numbers_of(json));
        if (far >= least) continue;
        least = far;
        best = file.stem().string();
    }
    if (best.empty() && measured) return nearest_device(numbers, platform, devices, calibrations);
    if (best.empty())
        throw UserError(devices.string() + ": has no calibrated device of " +
                        (platform.empty() ? "AMD or NVIDIA" : platform));
    return best;
}

ConfigFile calibration_of(const ConfigFile& device, const fs::path& devices, const fs::path& calibrations) {
    const std::string name = text_or_empty(device.json, "name");
    const bool is_name = !name.empty() && name.find('/') == std::string::npos;
    if (const fs::path own = calibrations / (name + ".json"); is_name && fs::exists(own))
        return read_config_file(own, "calibration");
    const std::string like = like_of(device, devices, calibrations);
    const Json known = read_json_file(devices / (like + ".json"));
    const ConfigFile fitted = read_config_file(calibrations / (like + ".json"), "calibration");
    const Factors own = numbers_of(device.json), of_like = numbers_of(known);
    const Factors factors = factors_between(own, of_like);

    const std::string how = "scaled from those of " + like + ", because " + name + " has no calibration";
    ConfigFile file{{{"schema", newest_version("calibration")}, {"device", name}, {"gemm", Json::object()}},
                    device.name + " (" + how + ")"};
    const auto add = [&](const std::string& type, const Json& group, const Factors& by) {
        Json& scaled = file.json["gemm"][type] = scaled_group(group, "gemm." + type, by, like);
        scaled["provenance"] = {{"estimate", how}};
        scaled["library"] = text_or_empty(group, "library") + ", " + how + " (estimate)";
    };
    file.json.update(scaled_kernels(fitted.json, known, device.json));
    const Json& groups = fitted.json.at("gemm");
    for (const auto& [type, group] : groups.items()) add(type, group, factors);
    // A type that the other device was not fitted for: bf16's parameters at the rate of the data sheet.
    for (const std::string& type : dtype_names) {
        const auto peak = own.find("peak_TFLOPS." + type), bf16 = of_like.find("peak_TFLOPS.bf16");
        if (groups.contains(type) || !groups.contains("bf16") || peak == own.end() || bf16 == of_like.end())
            continue;
        Factors by = factors;
        by["peak_TFLOPS." + type] = peak->second / bf16->second;
        add(type, groups["bf16"], by);
    }
    return file;
}

}  // namespace overlap
