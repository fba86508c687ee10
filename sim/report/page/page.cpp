#include "sim/report/page/page.hpp"

#include <string_view>

#include "sim/core/shown.hpp"

namespace overlap {

/// Files beside this one, put in by the build.
extern const std::string_view page_style, page_script, page_d3, page_plot;

void Page::add(const std::string& key, Json value) {
    Json block = Json::object();
    block[key] = std::move(value);
    blocks_.push_back(std::move(block));
}

void Page::heading(const std::string& text, const std::string& note) {
    add("heading", text);
    if (!note.empty()) blocks_.back()["note"] = note;
}

void Page::text(const std::string& text, bool bad) {
    add("text", text);
    if (bad) blocks_.back()["bad"] = true;
}

void Page::list(const std::vector<std::string>& items) {
    if (!items.empty()) add("list", items);
}

void Page::facts(const std::vector<std::pair<std::string, std::string>>& facts) {
    add("facts", facts);
}

void Page::code(const std::string& code) {
    add("code", code);
}

void Page::table(const std::vector<std::string>& head, const Json& rows, const std::string& id) {
    add("table", {{"head", head}, {"rows", rows}});
    if (!id.empty()) blocks_.back()["id"] = id;
}

void Page::chart(const std::string& kind, Json data) {
    blocks_.push_back(std::move(data));
    blocks_.back()["chart"] = kind;
}

void Page::details(const std::string& summary, const Page& inner) {
    add("details", summary);
    blocks_.back()["blocks"] = inner.blocks_;
}

void Page::append(const Page& other) {
    for (const Json& block : other.blocks_) blocks_.push_back(block);
}

void Page::view(const std::string& name) {
    add("view", name);
}

std::string to_html(const Page& page, const PageOrigin& origin) {
    Json data{{"title", page.title()},
              {"made", {{"version", origin.version}, {"date", origin.date}, {"command", origin.command}}},
              {"blocks", page.blocks()}};
    if (!page.sweep().is_null()) data["sweep"] = page.sweep();
    std::string json;  // without "</script>", whatever the texts contain
    for (const char letter : json_text(data)) letter == '<' ? json += "\\u003c" : json += letter;
    std::string html =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>sim</title>\n<style>\n";
    html.append(page_style) += "</style></head>\n<body><noscript>This page needs JavaScript.</noscript>\n";
    html += "<script type=\"application/json\" id=\"page-data\">" + json + "</script>\n";
    for (const std::string_view script : {page_d3, page_plot, page_script})
        html.append("<script>\n").append(script).append("</script>\n");
    return html + "</body></html>\n";
}

}  // namespace overlap
