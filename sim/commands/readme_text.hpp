#pragma once

#include <string_view>

namespace overlap {

/// sim/README.md and sim/transformer/README.md; put in by the build.
extern const std::string_view readme_text;

}  // namespace overlap
