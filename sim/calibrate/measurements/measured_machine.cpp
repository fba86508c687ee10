#include "sim/calibrate/measurements/measured_machine.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <sstream>

#include "sim/calibrate/measurements/measurement_file.hpp"
#include "sim/core/digest.hpp"
#include "sim/core/driver_facts.hpp"
#include "sim/core/input_file.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

constexpr double large_copy = 1 << 30;
const std::array<std::string, 2> platforms{"nvidia", "amd"}, platform_names{"NVIDIA", "AMD"};

const Json& array_of(ConfigObject& config, const std::string& key) {
    const Json& value = config.raw(key);
    if (!value.is_array()) config.fail(key, "is no array");
    return value;
}

/// A row of words for each GPU: "self nvlink nvlink".
FastLinks read_fast_links(ConfigObject& facts) {
    FastLinks fast;
    for (const std::string& row : facts.texts("links")) {
        std::istringstream words(row);
        std::vector<bool>& of_gpu = fast.emplace_back();
        for (std::string word; words >> word;) of_gpu.push_back(word == "nvlink" || word == "xgmi");
    }
    const bool square =
        std::all_of(fast.begin(), fast.end(), [&](const auto& row) { return row.size() == fast.size(); });
    if (!square) facts.fail("links", "is no table of " + std::to_string(fast.size()) + " words for each GPU");
    return fast;
}

void read_facts(ConfigObject facts, MeasuredMachine& machine) {
    machine.device = facts.text("device");
    machine.platform = platform_names.at(facts.choice("platform", platforms));
    machine.gpus = static_cast<int>(facts.integer("gpus", 1, 16));
    const auto fact = [&](const char* name, const char* key, double factor) {
        if (facts.has(name) && facts.raw(name).is_number() && facts.raw(name) > 0)
            machine.values[key] = facts.number(name, positive) * factor;
    };
    fact("compute_units", "compute_units", 1);
    fact("peak_clock_MHz", "peak_clock_GHz", 1e-3);
    fact("memory_GiB", "hbm_capacity_GB", GB_of_GiB);
    fact("cache_MiB", "last_level_cache_MB", MB_of_MiB);
    if (facts.has("links")) machine.fast_links = read_fast_links(facts);
    if (facts.has("power_limits_W"))
        if (const Json& limits = array_of(facts, "power_limits_W"); !limits.empty() && limits[0].is_number())
            machine.values["board_power_W"] = limits[0];
}

void read_held_out(ConfigObject held_out, MeasuredMachine& machine) {
    ConfigObject gemm = held_out.object("gemm");
    for (ConfigObject& family : gemm.objects("families"))
        machine.unseen_gemms.emplace(family.integer("n", 1, most_in_a_case),
                                     family.integer("odd_factor_of_k", 1, most_in_a_case));
    for (const Json& copies : array_of(held_out, "copies"))
        if (copies.is_object() && !copies.empty()) machine.unseen_copies.push_back(copies);
}

/// All files are of one machine and one installation, as the manifest's `facts` say.
void check_files(const std::filesystem::path& folder, const Json& facts) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (entry.path().extension() != ".jsonl" || name == "replays.jsonl" || name == "residency.jsonl" ||
            name == "reference.jsonl")
            continue;
        const MeasurementFile file = read_measurements(entry.path());
        ConfigObject line(file.machine, entry.path().string() + ":1");
        for (const char* key : {"device", "uuids", "driver", "gemm_library"})
            if (facts.contains(key) && line.has(key) && line.raw(key) != facts[key])
                line.fail(key, "is " + shown(line.raw(key)) + ", expected " + shown(facts[key]) +
                                   " as in manifest.json");
    }
}

/// Every file that the manifest lists is there, as scripts/measure packed it.
void check_digests(const std::filesystem::path& folder, ConfigObject digests) {
    for (const std::string& name : digests.keys()) {
        const std::string packed = digests.text(name);
        const std::filesystem::path inside = std::filesystem::path(name).lexically_normal();
        if (inside.empty() || inside.is_absolute() || *inside.begin() == ".." ||
            !std::filesystem::is_regular_file(folder / inside))
            digests.fail(name, "is no file of the archive");
        std::ifstream in = open_input(folder / inside, "a file of an archive");
        if (sha256_of(in) != packed)
            throw UserError((folder / inside).string() +
                            ": is not the file that was packed: its SHA-256 differs from manifest.json's");
    }
}

}  // namespace

bool MeasuredMachine::holds_out(const Json& row) const {
    return std::any_of(unseen_copies.begin(), unseen_copies.end(), [&](const Json& keys) {
        for (const auto& item : keys.items())
            if (!row.contains(item.key()) || row[item.key()] != item.value()) return false;
        return true;
    });
}

std::map<std::string, ValueOfCases> values_of_cases(const std::filesystem::path& folder) {
    std::map<std::string, double> us;  // by latency: the least median of the passes
    double best_copy = 0;
    std::vector<double> gemm_first;
    for (const std::string name : {"local.jsonl", "two_gpus.jsonl"}) {
        if (!std::filesystem::exists(folder / name)) continue;
        const MeasurementFile file = read_measurements(folder / name);
        for (const Measurement& measurement : file.measurements) {
            ConfigObject line = file.view(measurement);
            if (measurement.kind == "latency") {
                const double median = line.number("median", non_negative);
                const auto [place, is_new] = us.emplace(line.text("what"), median);
                if (!is_new) place->second = std::min(place->second, median);
            } else if (measurement.kind == "first_served") {
                if (line.text("at") == "middle") gemm_first.push_back(line.number("gemm_first", {0, 1}));
            } else if (measurement.kind == "local_copy" && line.text("agent") == "cu" &&
                       line.text("operation") == "copy" && line.number("size", positive) >= large_copy) {
                best_copy = std::max(best_copy,
                                     2e-3 * line.number("size", positive) / line.number("median", positive));
            }
        }
    }
    std::map<std::string, ValueOfCases> values;
    const auto derive = [&](const char* key, const std::string& file, const std::string& what,
                            bool less_a_kernel) {
        if (!us.contains(what) || !us.contains("kernels")) return;
        const double value = us.at(what) - (less_a_kernel ? us.at("kernels") : 0);
        if (value > 0)
            values[key] = {value, file + ", latency " + what + (less_a_kernel ? " less kernels" : "")};
    };
    derive("launch.kernel_us", "local.jsonl", "kernels", false);
    derive("launch.event_us", "local.jsonl", "kernels_marked", true);
    derive("launch.dependency_us", "local.jsonl", "stream_hop", true);
    derive("launch.remote_dependency_us", "two_gpus.jsonl", "gpu_hop", true);
    derive("launch.flag_us", "two_gpus.jsonl", "flag_hop", false);
    if (!gemm_first.empty())
        values["launch.gemm_first"] = {std::accumulate(gemm_first.begin(), gemm_first.end(), 0.0) /
                                           static_cast<double>(gemm_first.size()),
                                       "local.jsonl, first_served in the middle, mean of " +
                                           std::to_string(gemm_first.size()) + " cases"};
    if (best_copy > 0)
        values["hbm_GBps"] = {best_copy, "local.jsonl, the fastest copy of 1 GiB, read and written"};
    return values;
}

MeasuredMachine read_measured_machine(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / "manifest.json";
    if (!std::filesystem::exists(path))
        throw UserError(folder.string() + ": has no manifest.json, expected what scripts/measure writes");
    const Json json = read_json_file(path);
    ConfigObject manifest(json, path.string());
    manifest.integer("schema", 1, 1);
    MeasuredMachine machine;
    read_facts(manifest.object("facts"), machine);
    machine.date = manifest.text("date").substr(0, 10);
    read_held_out(manifest.object("held_out"), machine);
    for (ConfigObject& piece : manifest.objects("pieces"))
        if (const std::string state = piece.text("state"); state != "done")
            machine.missing.push_back(piece.text("name") + ": " + state);
    for (const Json& warning : array_of(manifest, "warnings"))
        if (warning.is_string()) machine.warnings.push_back(warning);
    if (manifest.has("sha256")) check_digests(folder, manifest.object("sha256"));
    check_files(folder, json["facts"]);
    return machine;
}

}  // namespace overlap
