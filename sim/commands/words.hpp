#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace overlap {

/// sim/README.md, sim/transformer/README.md and sim/report/words.md; put in by the build.
extern const std::string_view readme_text;

/// A word of the program's output, as a row of a table in one of these files defines it. The build puts
/// them into the program, so that the definitions exist once.
struct Word {
    std::vector<std::string> names;  ///< "exposed_comm_us", "exposed communication"
    std::string kind;                ///< the table's first heading: number, loss, price, word
    std::string meaning;

    /// Whether `name` is one of the names; a unit at the end ("_us", "_J") may be left out.
    bool is(const std::string& name) const;
};

std::vector<Word> documented_words();

/// Words that `name` is made of: itself if there is such a word, else what is left of it and the beginnings
/// ("backward_") and ends ("_dgrad") that documented names have.
std::vector<std::string> parts_of_name(const std::string& name, const std::vector<Word>& words);

}  // namespace overlap
