#pragma once

#include "sim/core/units.hpp"

namespace overlap {

/// Energy of all GPUs by cause; the parts add up to `total()`.
struct Energy {
    Joules idle;          ///< of GPUs that do nothing, over the whole time
    Joules active;        ///< in addition while anything runs on a GPU
    Joules compute;       ///< FLOPs of GEMMs
    Joules hbm;           ///< bytes read and written
    Joules links;         ///< bytes between GPUs, by any agent; includes DMA engines
    Joules copy_kernels;  ///< in addition for bytes between GPUs that kernels move
    Joules power_limit;   ///< ≤ 0: energy that the lower clock saves at the power limit

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
    friend Energy operator*(double f, const Energy& e) {
        return {f * e.idle,  f * e.active,       f * e.compute,    f * e.hbm,
                f * e.links, f * e.copy_kernels, f * e.power_limit};
    }
};

}  // namespace overlap
