#pragma once

#include <cmath>

namespace overlap {

inline constexpr double GB_of_GiB = 1.073741824, MB_of_MiB = 1.048576;

/// Whether what a driver says is what a data sheet says: 79.2 GiB are sold as 80 GB.
inline bool is_same_fact(double of_driver, double of_data_sheet) {
    return std::abs(of_driver / of_data_sheet - 1) <= 0.1;
}

}  // namespace overlap
