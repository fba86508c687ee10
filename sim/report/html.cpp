#include "sim/report/html.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "sim/core/ranges.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

constexpr std::string_view style = R"(
body{font:14px/1.45 system-ui,sans-serif;color:#1b1f24;margin:2rem auto;max-width:1080px;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem;border-bottom:1px solid #d0d7de;padding-bottom:.2rem}
table{border-collapse:collapse;margin:.5rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.15rem .6rem;border-bottom:1px solid #eaeef2;text-align:left}.n{text-align:right}
th{position:sticky;top:0;background:#f6f8fa;cursor:pointer;white-space:nowrap}
th[aria-sort=ascending]::after{content:" \25b2"}th[aria-sort=descending]::after{content:" \25bc"}
tr:hover td{background:#f6f8fa}.bad{color:#b35900;font-weight:600}.scroll{max-height:32rem;overflow:auto}
input{padding:.25rem .5rem;border:1px solid #d0d7de;border-radius:4px;width:22rem}
svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#1b1f24}
summary{cursor:pointer;padding:.2rem 0}.note{color:#59636e}
)";

constexpr std::string_view script = R"(
for(const table of document.querySelectorAll('table.data')){
  const body=table.tBodies[0],rows=[...body.rows];
  const box=document.createElement('input');box.placeholder='filter: every word must occur';
  box.setAttribute('aria-label','filter');
  box.oninput=()=>{const words=box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for(const row of rows){const text=row.textContent.toLowerCase();
      row.hidden=!words.every(word=>text.includes(word));}};
  if(rows.length>12)table.parentNode.insertBefore(box,table);
  // A column is sorted as numbers if all its cells are numbers, which a unit may follow; empty cells come last.
  const heads=[...table.tHead.rows[0].cells];
  heads.forEach((head,i)=>{let up=false;head.tabIndex=0;
    const text=row=>row.cells[i].textContent.trim(),some=rows.map(text).filter(Boolean);
    const numeric=some.every(one=>/^[-+]?\d[\d.]*(e[-+]?\d+)?( ?[%a-zA-Z/]+| - [\d.]+)?$/.test(one));
    head.onkeydown=event=>{if(event.key==='Enter')head.onclick();};head.onclick=()=>{up=!up;
    for(const other of heads)other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort',up?'ascending':'descending');
    const compare=numeric?(x,y)=>parseFloat(x)-parseFloat(y):(x,y)=>x.localeCompare(y,'en',{numeric:true});
    rows.sort((a,b)=>{const x=text(a),y=text(b);return !x-!y||(x&&y?compare(x,y)*(up?1:-1):0);});
    rows.forEach(row=>body.appendChild(row));};});
}
)";

std::string number(double value) {
    return fixed(value, 1);
}

/// Whether every cell of a column that is not empty begins like a number.
bool is_numeric(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
    const auto begins_a_number = [](const std::string& cell) {
        return std::isdigit(static_cast<unsigned char>(cell[0])) != 0 || cell[0] == '+' || cell[0] == '-';
    };
    return std::ranges::all_of(rows, [&](const std::vector<std::string>& row) {
        return column >= row.size() || row[column].empty() || begins_a_number(row[column]);
    });
}

std::string end_of(const std::string& element, const std::string& tip) {
    return tip.empty() ? "/>\n" : "><title>" + html_escaped(tip) + "</title></" + element + ">\n";
}

}  // namespace

std::string html_escaped(std::string_view text) {
    static const std::map<char, std::string> entities{
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
    std::string result;
    for (const char c : text) {
        const std::string* entity = value_at(entities, c);
        result += entity == nullptr ? std::string(1, c) : *entity;
    }
    return result;
}

std::string html_page(const std::string& title, const std::string& body, std::string_view more_style,
                      std::string_view more_script) {
    return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>" +
           html_escaped(title) + "</title>\n<style>" + std::string(style) + std::string(more_style) +
           "</style></head>\n<body>\n<h1>" + html_escaped(title) + "</h1>\n" + body + "<script>" +
           std::string(script) + std::string(more_script) + "</script>\n</body></html>\n";
}

std::string html_section(const std::string& title, const std::string& note, const std::string& body) {
    return "<h2>" + title + "</h2>\n<p class=\"note\">" + note + "</p>\n" + body;
}

std::string html_list(const std::vector<std::string>& items) {
    if (items.empty()) return "";
    std::string html = "<ul>\n";
    for (const std::string& item : items) html += "<li>" + html_escaped(item) + "</li>\n";
    return html + "</ul>\n";
}

std::string html_table(const std::vector<std::string>& head,
                       const std::vector<std::vector<std::string>>& rows) {
    std::vector<bool> numeric;
    for (std::size_t i = 0; i < head.size(); ++i) numeric.push_back(is_numeric(rows, i));
    const auto line_of = [&](const std::vector<std::string>& row, const std::string& element) {
        std::string html = "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i)
            html += "<" + element + (numeric[i] ? " class=\"n\">" : ">") + html_escaped(row[i]) +
                    "</" + element + ">";
        return html + "</tr>";
    };
    std::string html = "<table class=\"data\"><thead>" + line_of(head, "th") + "</thead><tbody>\n";
    for (const auto& row : rows) html += line_of(row, "td") + "\n";
    return html + "</tbody></table>\n";
}

void Drawing::rectangle(double x, double y, double width, double height, const std::string& style,
                        const std::string& tip) {
    elements_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
                 "\" height=\"" + number(height) + "\" style=\"" + style + "\"" + end_of("rect", tip);
}

void Drawing::mark(double x, double y, double radius, const Look& look, const std::string& tip) {
    const std::string style = "fill:" + look.colour + ";fill-opacity:.65";
    if (look.shape == 0) {
        elements_ += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(radius) +
                     "\" style=\"" + style + "\"" + end_of("circle", tip);
        return;
    }
    // Corners of the other shapes, for radius 1; all have about the circle's area.
    static const std::array<std::vector<std::pair<double, double>>, shape_count> corners{
        {{},
         {{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
         {{0, -1.3}, {1.2, 0.9}, {-1.2, 0.9}},
         {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}},
         {{0, 1.3}, {1.2, -0.9}, {-1.2, -0.9}}}};
    polygon(mapped(corners.at(look.shape),
                   [&](const auto& at) { return std::pair(x + radius * at.first, y + radius * at.second); }),
            style, tip);
}

void Drawing::line(double x1, double y1, double x2, double y2, const std::string& style) {
    elements_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" +
                 number(y2) + "\" style=\"" + style + "\"/>\n";
}

void Drawing::polygon(const std::vector<std::pair<double, double>>& points, const std::string& style,
                      const std::string& tip) {
    elements_ += "<polygon points=\"";
    for (const auto& [x, y] : points) elements_ += number(x) + "," + number(y) + " ";
    elements_ += "\" style=\"" + style + "\"" + end_of("polygon", tip);
}

void Drawing::text(double x, double y, const std::string& text, const std::string& anchor) {
    elements_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor +
                 "\" style=\"\">" + html_escaped(text) + "</text>\n";
}

std::string Drawing::svg() const {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width_) + "\" height=\"" +
           number(height_) + "\" viewBox=\"0 0 " + number(width_) + " " + number(height_) + "\">\n" +
           elements_ + "</svg>\n";
}

}  // namespace overlap
