#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.hpp"

namespace overlap {

/// Several mistakes of a user. `what()` has them in one line; `main` prints each in a line of its own.
class UserErrors : public UserError {
public:
    UserErrors(const std::string& in_one_line, std::vector<std::string> lines)
        : UserError(in_one_line), lines_(std::move(lines)) {}
    const std::vector<std::string>& lines() const { return lines_; }

private:
    std::vector<std::string> lines_;
};

/// Collects the errors of a file until all of it has been read, so that a user sees them together.
class KeptErrors {
public:
    /// Calls `read` and keeps a UserError that it throws.
    template <class Read>
    void keep(Read&& read) {
        try {
            std::forward<Read>(read)();
        } catch (const UserError& error) {
            texts_.emplace_back(error.what());
        }
    }

    /// Throws UserErrors with all kept errors, if there are any. In its one line the prefix that an error
    /// shares with the first ("<file>: ") is left out.
    void throw_all(const std::string& file) const {
        if (texts_.empty()) return;
        std::string line = texts_.front();
        for (std::size_t i = 1; i < texts_.size(); ++i) {
            const bool same_file = texts_[i].starts_with(file + ": ");
            line += "; " + (same_file ? texts_[i].substr(file.size() + 2) : texts_[i]);
        }
        throw UserErrors(line, texts_);
    }

private:
    std::vector<std::string> texts_;
};

}  // namespace overlap
