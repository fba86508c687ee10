#include "sim/core/errors.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/core/shown.hpp"

namespace overlap {
namespace {

constexpr std::size_t longest_name = 200;  // longer words are no names that somebody mistyped
constexpr std::size_t most_listed = 16;

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0U);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
        }
    }
    return row.back();
}

/// "a, b, c", each as `written`, and how many more there are.
template <class Write>
std::string listed(std::span<const std::string> names, Write written) {
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), most_listed); ++i)
        text += (i == 0 ? "" : ", ") + written(names[i]);
    if (names.size() > most_listed) text += " and " + std::to_string(names.size() - most_listed) + " more";
    return text;
}

/// Candidates that begin with `word`, then those that have it elsewhere.
std::vector<std::string> containing(std::string_view word, std::span<const std::string> candidates) {
    const std::string part = lower_case(std::string(word));
    std::vector<std::string> found, later;
    if (part.empty()) return found;
    for (const std::string& candidate : candidates) {
        const std::size_t at = lower_case(candidate).find(part);
        if (at != std::string::npos) (at == 0 ? found : later).push_back(candidate);
    }
    found.insert(found.end(), later.begin(), later.end());
    return found;
}

}  // namespace

std::string nearest_name(std::string_view word, std::span<const std::string> candidates) {
    if (word.size() > longest_name) return "";
    const std::string lower = lower_case(std::string(word));
    std::string best;
    // Distance without regard to case, then with it.
    std::pair<std::size_t, std::size_t> least{std::max<std::size_t>(2, word.size() / 3) + 1, 0};
    for (const std::string& candidate : candidates) {
        if (candidate.size() > longest_name) continue;
        const std::pair distance{edit_distance(lower, lower_case(candidate)), edit_distance(word, candidate)};
        if (distance < least) {
            least = distance;
            best = candidate;
        }
    }
    return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
    const std::string near = nearest_name(word, candidates);
    if (!near.empty()) return " (did you mean " + in_quotes(near, longest_name) + "?)";
    const std::vector<std::string> parts = containing(word, candidates);
    if (!parts.empty())
        return std::string(" (did you mean ") + (parts.size() > 1 ? "one of " : "") +
               listed(parts, [](const std::string& name) { return in_quotes(name, longest_name); }) + "?)";
    if (candidates.empty()) return " (none is allowed here)";
    return " (allowed: " + listed(candidates, [](const std::string& name) { return name; }) + ")";
}

std::size_t known_place(std::string_view word, std::span<const std::string> names,
                        const std::string& message) {
    const auto found = std::ranges::find(names, word);
    if (found == names.end()) throw UserError(message + suggestion(word, names));
    return static_cast<std::size_t>(found - names.begin());
}

}  // namespace overlap
