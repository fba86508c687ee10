#include "sim/report/look.hpp"

#include <array>

namespace overlap {
namespace {

const std::array<std::string, 8> colours{"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                         "#56b4e9", "#d55e00", "#8c7a00", "#555555"};

}  // namespace

Look look_of(std::size_t series) {
    const std::size_t turn = series / colours.size();
    // Series of one colour are 8 apart, and 8 + 1 is no multiple of 5: each turn has another shape.
    return {colour(series), (series + turn) % shape_count, turn % shape_count};
}

std::string colour(std::size_t number) {
    return colours[number % colours.size()];
}

}  // namespace overlap
