#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "sim/report/look.hpp"

namespace overlap {

/// Pieces of scripts for gnuplot, and how much room texts take at the font of write_picture. Widths and
/// heights are in pixels.
namespace gnuplot {

inline constexpr int letter = 11, line_height = 22;

/// Of the widest of `texts`.
int width_of(const std::vector<std::string>& texts);

/// Numbers with a space behind each, as data lines and options have them.
std::string numbers(std::initializer_list<double> values);

/// A text in a data block, where there are no single quotes.
std::string data_text(const std::string& text);

/// `text` quoted, broken at spaces into lines of at most `width`.
std::string broken(const std::string& text, int width);
/// How many lines these are.
int line_count(const std::string& text, int width);

/// Names at 0, 1, … of an axis.
std::string named_tics(char axis, const std::vector<std::string>& names, const std::string& more = "");
/// Round numbers from `low` to `high` on an axis ("x", "y", "cb") of `length` pixels, far enough apart for
/// its labels.
std::string number_tics(const std::string& axis, double low, double high, int length,
                        bool logarithmic = false);

std::string axis_title(char axis, const std::string& text);

/// Options of `plot … with points` and of `with boxes`.
std::string points_style(const Look& look);
std::string fill_style(const Look& look);

/// The plot command of layers.
std::string plot_of(const std::vector<std::string>& layers);

/// Named data blocks, which stand before the commands.
class Blocks {
public:
    /// Returns its name.
    std::string add(const std::string& lines);
    const std::string& text() const { return text_; }

private:
    std::string text_;
    int count_ = 0;
};

}  // namespace gnuplot
}  // namespace overlap
