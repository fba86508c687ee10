#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace overlap {

/// Shapes of marks, in the order of Look::shape: circle, square, triangle, diamond, triangle upside down.
inline constexpr std::size_t shape_count = 5;

/// How a series differs from all others in a plot: by colour and shape, or by colour and
/// fill pattern of its bars.
struct Look {
    std::string colour;
    std::size_t shape = 0;
    std::size_t pattern = 0;  ///< 0: solid; below `shape_count`
};

/// Eight colours that stay apart for colour-blind readers (Okabe and Ito, jfly.uni-koeln.de/color).
inline const std::array<std::string, 8> colours{"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                "#56b4e9", "#d55e00", "#8c7a00", "#555555"};
/// These in turn.
inline const std::string& colour(std::size_t number) {
    return colours[number % colours.size()];
}

/// Looks of the series 0, 1, …: the first 40 all differ, and neighbours differ in colour and in shape.
inline Look look_of(std::size_t series) {
    const std::size_t turn = series / colours.size();
    // Series of one colour are 8 apart, and 8 + 1 is no multiple of 5: each turn has another shape.
    return {colour(series), (series + turn) % shape_count, turn % shape_count};
}

}  // namespace overlap
