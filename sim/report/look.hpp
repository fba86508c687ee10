#pragma once

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

/// Looks of the series 0, 1, …: the first 40 all differ, and neighbours differ in colour and in shape.
/// sweep_page.js has the same ones.
Look look_of(std::size_t series);

/// Eight colours that stay apart for colour-blind readers (Okabe and Ito, jfly.uni-koeln.de/color), in turn.
std::string colour(std::size_t number);

}  // namespace overlap
