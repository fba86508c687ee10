#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.hpp"

namespace overlap {

/// Errors of a file that are kept until all of it has been read, so that a user sees them all at once.
class KeptErrors {
public:
    /// Calls `read`, and keeps the UserError that it throws.
    template <class Read>
    void keep(Read&& read) {
        try {
            std::forward<Read>(read)();
        } catch (const UserError& error) {
            texts_.emplace_back(error.what());
        }
    }

    /// Throws one UserError with all that were kept, in one line; nothing where there is none. Beginnings that
    /// an error has in common with the first ("<file>: ") are left out.
    void throw_all(const std::string& file) const {
        if (texts_.empty()) return;
        std::string line = texts_.front();
        for (std::size_t i = 1; i < texts_.size(); ++i) {
            const bool same_file = texts_[i].starts_with(file + ": ");
            line += "; " + (same_file ? texts_[i].substr(file.size() + 2) : texts_[i]);
        }
        throw UserError(line);
    }

private:
    std::vector<std::string> texts_;
};

}  // namespace overlap
