#pragma once

#include <array>
#include <optional>
#include <string>

namespace overlap {

/// How a claim stands.
enum class Standing { met, known_gap, outside, closed_gap, moved };
inline const std::array<std::string, 5> standing_names{"ok", "known gap", "OUTSIDE", "NO GAP ANY MORE",
                                                       "NOT AS REACHED"};

/// A claim on the accuracy of predictions: the value that was asked for, the value that was reached when the
/// claim was written, and the value of now. All three are in %.
struct Verdict {
    std::string claim;      ///< "agent=dma mean_abs_pct"
    bool at_least = false;  ///< the value is to be at least `asked`; otherwise at most
    double asked = 0;
    std::optional<double> reached;  ///< none: nobody wrote down what was reached
    double value = 0;
    bool known_gap = false;  ///< what was asked for is known not to be met, because of `reason`
    std::string reason;

    bool met() const { return at_least ? value >= asked : value <= asked; }
    /// An enforced claim must be met, a known gap must not be, and both must be where they were: a value that
    /// differs from `reached` by more than a twentieth (at least 0.1) has `moved`, for better or worse.
    Standing standing() const;
    bool fails() const { return standing() > Standing::known_gap; }
};

}  // namespace overlap
