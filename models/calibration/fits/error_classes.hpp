#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/core/error_summary.hpp"

namespace overlap {

/// Measurements of one kind: errors of a fit to all of them, and of fits that have not seen them.
struct ErrorClass {
    std::string name;
    std::size_t count = 0;
    ErrorSummary fitted, held_out;
};

/// With a heading, a line a class; empty classes are left out.
std::string error_table(std::span<const ErrorClass> classes);

}  // namespace overlap
