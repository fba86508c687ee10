#include "sim/core/file_version.hpp"

#include <algorithm>
#include <array>

#include "sim/core/errors.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

/// 1 had "limit" for "asked".
void tolerances_from_1(Json& file) {
    if (!file.contains("claims") || !file["claims"].is_array()) return;
    for (Json& claim : file["claims"])
        if (claim.is_object() && claim.contains("limit")) {
            claim["asked"] = claim["limit"];
            claim.erase("limit");
        }
}

/// 1 had three effects that are worth nothing: no case of traces/h200_* is predicted better by them.
void device_from_1(Json& file) {
    if (!file.contains("dma") || !file["dma"].is_object()) return;
    for (const char* key : {"poll_apart_us", "pull_step_us", "event_us"}) file["dma"].erase(key);
}

/// 1 did not say what kind of evidence a figure is. Nobody has said that such a figure is independent.
void experiment_from_1(Json& file) {
    if (!file.contains("cases") || !file["cases"].is_array()) return;
    for (Json& one : file["cases"])
        if (one.is_object() && !one.contains("kind")) one["kind"] = "same_source";
}

/// How a file of version `from` becomes one of the next version.
struct Upgrade {
    const char* kind;
    int from;
    void (*change)(Json& file);
    const char* lacks = nullptr;  ///< why it can't become one
};
const std::array<Upgrade, 5> upgrades{
    {{"tolerances", 1, tolerances_from_1},
     {"experiment", 1, experiment_from_1},
     {"device", 1, device_from_1},
     {"calibration", 1, device_from_1},
     {"plan", 1, nullptr, "left out what a simulation needs: write it anew by sim --graph"}}};

}  // namespace

int newest_version(const std::string& kind) {
    int newest = 1;
    for (const Upgrade& upgrade : upgrades)
        if (upgrade.kind == kind) newest = std::max(newest, upgrade.from + 1);
    return newest;
}

Json upgraded(Json file, const std::string& kind, const std::string& origin) {
    if (!file.is_object() || !file.contains("schema") || !file["schema"].is_number_unsigned()) return file;
    for (const Upgrade& upgrade : upgrades) {
        if (upgrade.kind != kind || file["schema"] != upgrade.from) continue;
        if (upgrade.change == nullptr)
            throw UserError(one_line(origin) + ": /schema: is a version that " + upgrade.lacks);
        upgrade.change(file);
        file["schema"] = upgrade.from + 1;
    }
    if (file["schema"] > newest_version(kind))
        throw UserError(one_line(origin) + ": /schema: is " + shown(file["schema"]) +
                        ", newer than this program, expected at most version " +
                        std::to_string(newest_version(kind)));
    return file;
}

}  // namespace overlap
