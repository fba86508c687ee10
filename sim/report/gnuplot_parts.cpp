#include "sim/report/gnuplot_parts.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "sim/report/gnuplot.hpp"
#include "sim/report/text_format.hpp"
#include "sim/report/ticks.hpp"

namespace overlap::gnuplot {
namespace {

std::vector<std::string> lines_of(const std::string& text, int width) {
    std::vector<std::string> lines;
    std::istringstream words(text);
    std::string word;
    while (words >> word) {
        if (!lines.empty() && static_cast<int>(lines.back().size() + 1 + word.size()) * letter <= width)
            lines.back() += " " + word;
        else
            lines.push_back(word);
    }
    return lines;
}

}  // namespace

int width_of(const std::vector<std::string>& texts) {
    std::size_t most = 0;
    for (const std::string& text : texts) most = std::max(most, text.size());
    return static_cast<int>(most) * letter;
}

std::string numbers(std::initializer_list<double> values) {
    std::ostringstream out;
    out.precision(10);
    for (const double value : values) out << value << ' ';
    return out.str();
}

std::string data_text(const std::string& text) {
    return '"' + text + '"';
}

std::string broken(const std::string& text, int width) {
    std::string quoted;
    for (const std::string& line : lines_of(text, width))
        quoted += (quoted.empty() ? "" : ".\"\\n\".") + gnuplot_quoted(line);
    return quoted.empty() ? "''" : quoted;
}

int line_count(const std::string& text, int width) {
    return static_cast<int>(lines_of(text, width).size());
}

std::string named_tics(char axis, const std::vector<std::string>& names, const std::string& more) {
    std::string text = std::string("set ") + axis + "tics" + more + " (";
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : ", ") + gnuplot_quoted(names[i]) + " " + std::to_string(i);
    return text + ") scale 0\n";
}

std::string number_tics(const std::string& axis, double low, double high, int length, bool logarithmic) {
    // Below an axis labels are up to ten letters wide, beside a vertical axis or a colour box one line high.
    const int room = axis == "x" ? 10 * letter : line_height;
    std::string text;
    for (const double tick : logarithmic ? log_ticks(low, high, static_cast<double>(room) / length)
                                         : linear_ticks(low, high, std::max(1, length / room)))
        text += (text.empty() ? "" : ", ") + gnuplot_quoted(plain(tick)) + " " + numbers({tick});
    return "set " + axis + "tics (" + text + ")\n";
}

std::string axis_title(char axis, const std::string& text) {
    return std::string("set ") + axis + "label " + gnuplot_quoted(text) + "\n";
}

std::string points_style(const Look& look) {
    constexpr std::array<int, shape_count> filled{7, 5, 9, 13, 11};
    return " pt " + std::to_string(filled.at(look.shape)) + " ps 1.1 lc rgb '" + look.colour + "'";
}

std::string fill_style(const Look& look) {
    constexpr std::array<int, shape_count> hatched{0, 4, 5, 2, 6};
    const std::string fill =
        look.pattern == 0 ? "solid" : "pattern " + std::to_string(hatched.at(look.pattern));
    return " fs " + fill + " border lc rgb '" + look.colour + "' fc rgb '" + look.colour + "'";
}

std::string plot_of(const std::vector<std::string>& layers) {
    std::string text = "plot ";
    for (const std::string& layer : layers) text += (text.size() == 5 ? "" : ", \\\n     ") + layer;
    return text + "\n";
}

std::string DataBlocks::add(const std::string& lines) {
    const std::string name = "$b" + std::to_string(count_++);
    text_ += name + " << EOD\n" + lines + "EOD\n";
    return name;
}

}  // namespace overlap::gnuplot
