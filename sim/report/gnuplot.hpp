#pragma once

#include <filesystem>
#include <string>

#include "sim/report/plot.hpp"

namespace overlap {

/// Throws a UserError that names the package to install where there is no gnuplot: ask before a long
/// computation.
void require_gnuplot();

/// A picture in gnuplot's language; the terminal is set by who writes it. Sizes in pixels.
struct GnuplotScript {
    int width = 0, height = 0;
    std::string text;
};

/// `text` in gnuplot's single quotes.
std::string gnuplot_quoted(const std::string& text);

/// Throws a UserError where the extension is neither .svg nor .png.
void require_picture_name(const std::filesystem::path& file);

/// SVG, or PNG with two pixels for one, by the extension. Throws UserError as write_svg does.
void write_picture(const std::filesystem::path& file, const GnuplotScript& script);

/// Draws `plot` as an SVG file by a gnuplot process (5.2 or newer). The same plot gives the same bytes with
/// the same gnuplot. Throws UserError where there is none or the file cannot be written.
void write_svg(const std::filesystem::path& file, const Plot& plot);

}  // namespace overlap
