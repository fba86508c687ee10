#pragma once

#include <filesystem>

#include "sim/report/plot.hpp"

namespace overlap {

/// Throws a UserError that names the package to install where there is no gnuplot: ask before a long
/// computation.
void require_gnuplot();

/// Draws `plot` as an SVG file by a gnuplot process (5.2 or newer). The same plot gives the same bytes with
/// the same gnuplot. Throws UserError where there is none or the file cannot be written.
void write_svg(const std::filesystem::path& file, const Plot& plot);

}  // namespace overlap
