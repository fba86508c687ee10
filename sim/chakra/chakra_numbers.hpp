#pragma once

#include <cstdint>

#include "sim/workload/workload.hpp"

namespace overlap {

/// What Chakra says of an operator other than a send: FLOPs and bytes, or a collective's type and size.
struct ChakraNumbers {
    std::uint64_t ops = 0, tensor_bytes = 0, micros = 0;
    std::int64_t comm_type = -1;
    std::uint64_t comm_bytes = 0;
    friend bool operator==(const ChakraNumbers&, const ChakraNumbers&) = default;
};
ChakraNumbers chakra_numbers(const Operator& op, std::int64_t ranks);

/// Nearest whole number, at most 9e18.
std::uint64_t whole_number(double value);

}  // namespace overlap
