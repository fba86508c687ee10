#pragma once

#include <filesystem>
#include <string>

namespace overlap {

/// Throws UserError with the package to install if gnuplot is missing. Call it before a long computation.
void require_gnuplot();

/// A picture as a gnuplot script without terminal, which the writer sets. Sizes in pixels.
struct GnuplotScript {
    int width = 0, height = 0;
    std::string text;
};

/// `text` in gnuplot's single quotes.
std::string gnuplot_quoted(const std::string& text);

/// Throws UserError if the extension is neither .svg nor .png.
void require_picture_name(const std::filesystem::path& file);

/// Writes SVG, or PNG at two pixels for each pixel, by the extension. Throws UserError if
/// gnuplot is missing or fails, or the file cannot be written.
void write_picture(const std::filesystem::path& file, const GnuplotScript& script);

}  // namespace overlap
