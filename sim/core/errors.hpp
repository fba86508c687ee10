#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace overlap {

/// A mistake of the user (bad file, value, name, flag). The text is one line with the place, the given value
/// and the allowed values. `main` prints it and exits with 2; nothing below `main` exits.
class UserError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The candidate closest to `word` by edit distance, or an empty string if none is close.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

/// " (did you mean 'x'?)", or " (allowed: a, b, c)" if no candidate is close.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// The place of `word` in `names`. Throws UserError, `message` and a suggestion, if it is not there.
std::size_t known_place(std::string_view word, std::span<const std::string> names,
                        const std::string& message);

}  // namespace overlap
