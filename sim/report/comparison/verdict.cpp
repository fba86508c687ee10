#include "sim/report/comparison/verdict.hpp"

#include <algorithm>
#include <cmath>

namespace overlap {
namespace {

constexpr double least_move_pct = 0.1, move_share = 0.05;

}  // namespace

Standing Verdict::standing() const {
    if (met() == known_gap) return known_gap ? Standing::closed_gap : Standing::outside;
    if (reached && std::abs(value - *reached) > std::max(least_move_pct, move_share * *reached))
        return Standing::moved;
    return known_gap ? Standing::known_gap : Standing::met;
}

}  // namespace overlap
