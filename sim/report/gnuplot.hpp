#pragma once

#include <filesystem>
#include <string>

namespace overlap {

/// What gnuplot (5.2 or newer) prints when it is fed `script`. Throws UserError where there is none, or it fails.
std::string run_gnuplot(const std::string& script);

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

}  // namespace overlap
