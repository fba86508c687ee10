#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/report/look.hpp"

namespace overlap {

/// Text for HTML and SVG, with & < > " replaced.
std::string html_escaped(std::string_view text);

/// A self-contained page: style, body, and a script that sorts and filters tables of class "data" (a text box
/// above each table; a click or Enter on a column heading sorts). More CSS and JavaScript can be given.
std::string html_page(const std::string& title, const std::string& body, std::string_view more_style = "",
                      std::string_view more_script = "");

/// A table of class "data". Cells are text; cells that begin with a digit, + or - are right-aligned.
std::string html_table(const std::vector<std::string>& head,
                       const std::vector<std::vector<std::string>>& rows);

/// A heading, a note below it in HTML, and `body`.
std::string html_section(const std::string& title, const std::string& note, const std::string& body);

/// A list of texts.
std::string html_list(const std::vector<std::string>& items);

/// A drawing of SVG elements, in pixels from the top left.
class Drawing {
public:
    Drawing(double width, double height) : width_(width), height_(height) {}
    void set_height(double height) { height_ = height; }

    /// `tip` is shown beside the pointer; `style` is CSS.
    void rectangle(double x, double y, double width, double height, const std::string& style,
                   const std::string& tip = "");
    /// A mark of about 2 · `radius` with the shape and fill of `look`.
    void mark(double x, double y, double radius, const Look& look, const std::string& tip = "");
    void line(double x1, double y1, double x2, double y2, const std::string& style);
    void polygon(const std::vector<std::pair<double, double>>& points, const std::string& style,
                 const std::string& tip = "");
    /// `anchor` is start, middle or end.
    void text(double x, double y, const std::string& text, const std::string& anchor = "start");
    std::string svg() const;

private:
    double width_, height_;
    std::string elements_;
};

}  // namespace overlap
