#pragma once

#include <string_view>

namespace overlap {

/// sweep_page.css, and the scripts of the page of a sweep one after another; put in by the build.
extern const std::string_view sweep_page_style;
extern const std::string_view sweep_page_script;

}  // namespace overlap
