#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "sim/report/look.hpp"

namespace overlap {

/// Pieces of gnuplot scripts, and sizes of texts in the font of write_picture.
/// Widths and heights are in pixels.
namespace gnuplot {

inline constexpr int letter = 11, line_height = 22;

/// Width of the widest text.
int width_of(const std::vector<std::string>& texts);

/// Numbers, each followed by a space, for data lines and options.
std::string numbers(std::initializer_list<double> values);

/// A text for a data block, which has no single quotes.
std::string data_text(const std::string& text);

/// `text` quoted, broken at spaces into lines of at most `width`.
std::string broken(const std::string& text, int width);
/// Number of those lines.
int line_count(const std::string& text, int width);

/// Names at 0, 1, … of an axis.
std::string named_tics(char axis, const std::vector<std::string>& names, const std::string& more = "");
/// Round numbers from `low` to `high` for an axis ("x", "y", "cb") of `length` pixels, with
/// enough distance for labels.
std::string number_tics(const std::string& axis, double low, double high, int length,
                        bool logarithmic = false);

std::string axis_title(char axis, const std::string& text);

/// Options of `plot … with points` and of `with boxes`.
std::string points_style(const Look& look);
std::string fill_style(const Look& look);

/// The plot command of layers.
std::string plot_of(const std::vector<std::string>& layers);

/// Named data blocks, which must come before the commands.
class DataBlocks {
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
