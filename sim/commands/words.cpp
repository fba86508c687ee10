#include "sim/commands/words.hpp"

#include <algorithm>
#include <array>
#include <sstream>

namespace overlap {
namespace {

/// Last headings of the tables that define words, and what is said before a meaning.
constexpr std::array<std::array<const char*, 2>, 4> defining{
    {{"definition", ""}, {"gained by", "gained by: "}, {"how it came about", ""}, {"meaning", ""}}};

std::string trimmed(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
    return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// Without Markdown's backticks, bold and addresses of links.
std::string plain_text(const std::string& cell) {
    std::string text;
    for (std::size_t i = 0; i < cell.size(); ++i) {
        if (cell.compare(i, 2, "](") == 0) {
            i = std::min(cell.find(')', i), cell.size() - 1);
            continue;
        }
        if (cell[i] != '`' && cell[i] != '*' && cell[i] != '[') text += cell[i];
    }
    return text;
}

std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream parts(line.substr(1));
    for (std::string cell; std::getline(parts, cell, '|');) cells.push_back(trimmed(cell));
    return cells;
}

/// "pull, push": two names; "decomposition loss (DIL)": two as well.
void add_names(const std::string& cell, std::vector<std::string>& names) {
    std::istringstream parts(plain_text(cell));
    for (std::string part; std::getline(parts, part, ',');) {
        const std::string name = trimmed(part);
        if (name.empty()) continue;
        names.push_back(name);
        const std::size_t open = name.find(" (");
        if (open == std::string::npos || !name.ends_with(')')) continue;
        names.push_back(name.substr(0, open));
        names.push_back(name.substr(open + 2, name.size() - open - 3));
    }
}

/// Takes a documented beginning or end off `name`, and returns it; empty if `name` has none.
std::string cut_affix(std::string& name, const std::vector<Word>& words) {
    for (const Word& word : words)
        for (const std::string& affix : word.names) {
            if (affix.size() < 2 || affix.size() >= name.size()) continue;
            if (affix.front() == '_' && name.ends_with(affix)) {
                name.resize(name.size() - affix.size());
                return affix;
            }
            if (affix.back() == '_' && name.starts_with(affix)) {
                name.erase(0, affix.size());
                return affix;
            }
        }
    return "";
}

}  // namespace

bool Word::is(const std::string& name) const {
    return std::ranges::any_of(names, [&](const std::string& one) {
        return one == name || one == name + "_us" || one == name + "_J";
    });
}

std::vector<Word> documented_words() {
    std::vector<Word> words;
    std::vector<std::string> head;  // of the table that is read
    std::istringstream lines{std::string(readme_text)};
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("| ")) {
            if (!line.starts_with("|-")) head.clear();
            continue;
        }
        const std::vector<std::string> cells = cells_of(line);
        if (head.empty()) {
            head = cells;
            continue;
        }
        const auto* how =
            std::ranges::find_if(defining, [&](const auto& one) { return head.back() == one[0]; });
        if (how == defining.end() || cells.size() != head.size()) continue;
        Word word{{}, head.front(), (*how)[1] + plain_text(cells.back())};
        for (std::size_t i = 0; i + 1 < cells.size(); ++i) add_names(cells[i], word.names);
        words.push_back(std::move(word));
    }
    return words;
}

std::vector<std::string> parts_of_name(const std::string& name, const std::vector<Word>& words) {
    std::vector<std::string> parts;
    std::string rest = name;
    const auto known = [&] {
        return std::ranges::any_of(words, [&](const Word& word) { return word.is(rest); });
    };
    while (!known()) {
        const std::string affix = cut_affix(rest, words);
        if (affix.empty()) return {name};
        parts.push_back(affix);
    }
    parts.insert(parts.begin(), rest);
    return parts;
}

}  // namespace overlap
