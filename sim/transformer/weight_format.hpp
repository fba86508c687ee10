#pragma once

#include <string>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/dtype.hpp"

namespace overlap {

/// How weights are stored. Embedding and output projection stay in 16 bits, as quantisers leave them.
struct WeightFormat {
    std::string name;              ///< as the field calls it: "fp8_block"; empty: as the step computes
    double bits = 0;               ///< of a weight with its share of scales
    DType operands = DType::bf16;  ///< of GEMMs on such weights, where the device has them
    bool only_experts = false;     ///< the others are in 16 bits
    bool fp8_caches = false;       ///< keys and values are in 8 bits

    bool is_set() const { return !name.empty(); }
    double bytes() const { return bits / 8; }
    /// GemmShape::weight_bits of GEMMs on operands of a type.
    double bits_beside(DType type) const { return bits == 8 * element_size(type).si() ? 0 : bits; }
};

/// The names that --dtype takes besides those of operands.
std::vector<std::string> weight_format_names();
/// A format by its name; not set where no format has that name.
WeightFormat weight_format(const std::string& name);

/// What a config's "quantization_config" says; not set without one. Adds notes of what it says and is not read.
WeightFormat read_weight_format(ConfigObject config, std::vector<std::string>& notes);

}  // namespace overlap
