#pragma once

#include "sim/core/units.hpp"

namespace overlap {

/// Energy by what takes it, of all GPUs together; the parts add up to `total()`.
struct Energy {
    Joules idle;          ///< what GPUs take that do nothing, for all of the time
    Joules active;        ///< what they take beyond that while anything runs on them
    Joules compute;       ///< FLOPs of GEMMs
    Joules hbm;           ///< bytes read and written
    Joules links;         ///< bytes from GPU to GPU, whoever moves them; what DMA engines take is in it
    Joules copy_kernels;  ///< what those bytes take more that kernels move
    Joules power_limit;   ///< 0 or less: what a lower clock saves where power is limited

    Joules total() const { return idle + active + compute + hbm + links + copy_kernels + power_limit; }
    Energy& operator+=(const Energy& other) {
        idle += other.idle;
        active += other.active;
        compute += other.compute;
        hbm += other.hbm;
        links += other.links;
        copy_kernels += other.copy_kernels;
        power_limit += other.power_limit;
        return *this;
    }
};

}  // namespace overlap
