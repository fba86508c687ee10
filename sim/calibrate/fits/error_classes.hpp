#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "sim/core/error_summary.hpp"

namespace overlap {

/// Measurements of one kind: errors of the fit to all rows, and of fits that have not seen the row's family.
struct ErrorClass {
    std::string name;
    std::size_t count = 0;
    ErrorSummary fitted, held_out;
};

/// Writes a fraction as a cell of `width` in per cent.
std::ostream& put_percent(std::ostream& out, int width, double share);

/// A heading and one line for each class; empty classes are left out.
std::string error_table(std::span<const ErrorClass> classes);

}  // namespace overlap
