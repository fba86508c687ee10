#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace overlap::hip {

/// A mistake of the user: one line, exit 2.
struct UserError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Type { count, bytes, word };

/// One parameter of a question.
struct Key {
    std::string name;
    Type type = Type::count;
    std::string fallback = "";            ///< empty: must be given
    std::vector<std::string> words = {};  ///< allowed values of a `word`
};

struct Kind {
    std::string name;
    std::vector<Key> keys;
};

/// One measurement to make: a value for every key of its kind.
struct Case {
    std::string kind;
    int line = 0;
    std::vector<std::pair<const Key*, std::string>> values;

    const std::string& word(const std::string& key) const;
    std::int64_t count(const std::string& key) const;
    std::int64_t bytes(const std::string& key) const;
    std::string text() const;
};

/// Reads a list of cases. A line is `kind key=value key=value …`; a value `a,b,c` makes one case for
/// each; several such values make all combinations, with the last key fastest. `#` starts a comment.
/// Sizes take KiB, MiB, GiB. The keys of `kinds` must outlive the cases. Throws UserError "file:line: …"
/// with the allowed values.
std::vector<Case> read_cases(const std::string& path, const std::vector<Kind>& kinds);

}  // namespace overlap::hip
