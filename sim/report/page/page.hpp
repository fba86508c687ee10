#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/config_reader.hpp"

namespace overlap {

/// A page as data: blocks that page.js draws in a browser from top to bottom. Texts are plain, not HTML.
class Page {
public:
    using Cells = std::vector<std::vector<std::string>>;

    explicit Page(std::string title = "") : title_(std::move(title)) {}

    void heading(const std::string& text, const std::string& note = "");
    void text(const std::string& text, bool bad = false);
    void list(const std::vector<std::string>& items);
    /// Names and values beside each other.
    void facts(const std::vector<std::pair<std::string, std::string>>& facts);
    void code(const std::string& code);
    /// Sorted by clicks on its head, filtered by words. `rows`: cells are texts, or {text, small, tip, share}, where
    /// `share` from 0 to 1 is the strength of the cell's colour. A column is numeric if all its cells are numbers,
    /// which a unit may follow. `id` names it for tests.
    void table(const std::vector<std::string>& head, const Json& rows, const std::string& id = "");
    /// One of `charts` in page.js with the data that it documents.
    void chart(const std::string& kind, Json data);
    /// Blocks of `inner`, hidden until the summary is clicked.
    void details(const std::string& summary, const Page& inner);
    /// Adds the blocks of `other`.
    void append(const Page& other);
    /// The points of a sweep, for views that are added afterwards: "heat", "pareto", "losses" and "points".
    void set_sweep(Json points) { sweep_ = std::move(points); }
    void view(const std::string& name);

    const std::string& title() const { return title_; }
    const Json& blocks() const { return blocks_; }
    const Json& sweep() const { return sweep_; }

private:
    void add(const std::string& key, Json value);

    std::string title_;
    Json blocks_ = Json::array(), sweep_;
};

/// How a page came about, which stands below its title.
struct PageOrigin {
    std::string version, date, command;
};

/// The page as one file that needs no network: styles, scripts, the charting library and the data are in it.
std::string to_html(const Page& page, const PageOrigin& origin);

}  // namespace overlap
