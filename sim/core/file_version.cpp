#include "sim/core/file_version.hpp"

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

/// How a file of version `from` becomes one of the next version.
struct Upgrade {
    const char* kind;
    int from;
    void (*change)(Json& file);
};
const std::array<Upgrade, 1> upgrades{{{"tolerances", 1, tolerances_from_1}}};

}  // namespace

Json upgraded(Json file, const std::string& kind, const std::string& origin) {
    if (!file.is_object() || !file.contains("schema") || !file["schema"].is_number_unsigned()) return file;
    int newest = 1;
    for (const Upgrade& upgrade : upgrades) {
        if (upgrade.kind != kind) continue;
        newest = upgrade.from + 1;
        if (file["schema"] != upgrade.from) continue;
        upgrade.change(file);
        file["schema"] = newest;
    }
    if (file["schema"] > newest)
        throw UserError(one_line(origin) + ": /schema: is " + shown(file["schema"]) +
                        ", newer than this program, expected at most version " + std::to_string(newest));
    return file;
}

}  // namespace overlap
