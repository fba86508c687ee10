#include "sim/calibrate/command/measured_archive.hpp"

#include <algorithm>

#include "sim/calibrate/command/archive_validation.hpp"
#include "sim/core/archive.hpp"
#include "sim/core/driver_facts.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/topology/like_device.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

/// The folder in the archive that holds the manifest.
fs::path measured_folder(const fs::path& unpacked, const fs::path& archive) {
    if (fs::exists(unpacked / "manifest.json")) return unpacked;
    for (const auto& entry : fs::directory_iterator(unpacked))
        if (fs::exists(entry.path() / "manifest.json")) return entry.path();
    throw UserError(archive.string() + ": has no manifest.json, expected an archive of scripts/measure");
}

bool is_like(const MeasuredMachine& machine, const Json& device) {
    return std::ranges::all_of(machine.values, [&](const auto& fact) {
        if (fact.first == "board_power_W") return true;  // its user may lower it
        const double known = device.at(fact.first).at("value");
        return is_same_fact(fact.second, known);
    });
}

}  // namespace

MeasuredArchive::MeasuredArchive(const fs::path& path) : folder_(path) {
    if (!fs::exists(path)) throw UserError(path.string() + ": no such archive or folder");
    if (fs::is_directory(path)) return;
    unpack(path, unpacked_.path());
    folder_ = measured_folder(unpacked_.path(), path);
}

bool is_measured_archive(const fs::path& path) {
    return fs::is_directory(path) ? fs::exists(path / "manifest.json") : path.string().ends_with(".tar.gz");
}

std::string shipped_device(const MeasuredMachine& machine, const std::string& shown,
                           const std::string& flag) {
    const ConfigFolder shipped = ConfigFolder::standard();
    const std::string name = nearest_device(machine.values, machine.platform, shipped.folder("devices"),
                                            shipped.folder("calibrations"));
    if (!is_like(machine, read_config_file(shipped.find("devices", name), "device").json))
        throw UserError(shown + ": is of " + in_quotes(machine.device) +
                        ", no shipped device; give it a name by " + flag + " (the nearest is " + name + ")");
    return name;
}

std::vector<MeasuredCase> schedules_of_archive(const fs::path& path, std::string device) {
    const MeasuredArchive archive(path);
    if (device.empty())
        device = shipped_device(read_measured_machine(archive.folder()), path.string(), "--device");
    const fs::path file = archive.folder() / "replays.jsonl";
    if (!holds_cases(file)) throw UserError(path.string() + ": has no measured schedule in it");
    std::vector<MeasuredCase> cases = read_measured_cases(std::vector{file.string()});
    for (MeasuredCase& one : cases) {
        one.origin = path.string() + one.origin.substr(archive.folder().string().size());
        put_on_device(one, device);
    }
    return cases;
}

}  // namespace overlap
