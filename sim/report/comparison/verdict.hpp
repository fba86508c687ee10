#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

namespace overlap {

/// A claim about a single case, for example a published figure.
struct CaseTolerance {
    double error = 0;        ///< largest |predicted / measured − 1|
    bool known_gap = false;  ///< outside `error`, because of `reason`; once inside, this is an error
    std::string reason;
};

/// State of a claim.
enum class Standing { met, known_gap, outside, closed_gap, moved };
inline const std::array<std::string, 5> standing_names{"ok", "known gap", "OUTSIDE", "NO GAP ANY MORE",
                                                       "NOT AS REACHED"};

/// A claim on the accuracy of predictions, with three values in %: asked for, reached when the claim
/// was written, and current.
struct Verdict {
    std::string claim;      ///< "agent=dma mean_abs_pct"
    bool at_least = false;  ///< the value must be at least `asked`; otherwise at most
    double asked = 0;
    std::optional<double> reached;  ///< none if it was not recorded
    double value = 0;
    bool known_gap = false;  ///< the claim is known not to be met, because of `reason`
    std::string reason;

    bool met() const { return at_least ? value >= asked : value <= asked; }
    /// An enforced claim must be met and a known gap must not be met. Both must also stay at `reached`: a
    /// value that differs by more than a twentieth (at least 0.1) in either direction has `moved`.
    Standing standing() const {
        constexpr double least_move_pct = 0.1, move_share = 0.05;
        if (met() == known_gap) return known_gap ? Standing::closed_gap : Standing::outside;
        if (reached && std::abs(value - *reached) > std::max(least_move_pct, move_share * *reached))
            return Standing::moved;
        return known_gap ? Standing::known_gap : Standing::met;
    }
    bool fails() const { return standing() > Standing::known_gap; }
};

}  // namespace overlap
