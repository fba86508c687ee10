#pragma once

#include <string>
#include <vector>

namespace overlap {

/// A word of the program's output, as a row of a table in sim/README.md defines it. The build puts that file into the
/// program, so that the definitions exist once.
struct Word {
    std::vector<std::string> names;  ///< "exposed_comm_us", "exposed communication"
    std::string kind;                ///< the table's first heading: number, loss, price, word
    std::string meaning;

    /// Whether `name` is one of the names; a unit at the end ("_us", "_J") may be left out.
    bool is(const std::string& name) const;
};

std::vector<Word> documented_words();

}  // namespace overlap
