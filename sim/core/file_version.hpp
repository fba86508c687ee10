#pragma once

#include <string>

#include "sim/core/json.hpp"

namespace overlap {

/// `file` in the newest version of its kind's format ("device", "run", … as in configs/schema), one version at a
/// time from the one that its "schema" says. Throws UserError where that is newer than this program; whatever
/// else is wrong with the file is left to its reader. tests/samples has a file of each kind and version.
Json upgraded(Json file, const std::string& kind, const std::string& origin);

}  // namespace overlap
