#pragma once

#include <string>

#include "sim/core/json.hpp"

namespace overlap {

/// The version of a kind's format that this program reads and writes ("device", "run", … as in configs/schema).
int newest_version(const std::string& kind);
/// `file` in the newest version of its kind's format, one version at a
/// time from the one that its "schema" says. Throws UserError where that is newer than this program; whatever
/// else is wrong with the file is left to its reader. tests/samples has a file of each kind and version.
Json upgraded(Json file, const std::string& kind, const std::string& origin);

}  // namespace overlap
