#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/calibration/measurements/measurement_file.hpp"
#include "models/cost_model.hpp"

namespace overlap {

/// Work and copies beside it, as in an `interference` or `late_copy` case of the microbenchmark
/// (models/calibration/hip/interference.cpp, late_copy.cpp).
struct Beside {
    Work work;           ///< on GPU 0: a GEMM, or a copy within it
    int work_units = 0;  ///< compute units the GEMM is limited to; 0: all
    std::string kind;    ///< "dma_in", "cu_push", …
    int peers = 1, blocks = 0;
    Bytes size;
    bool high_priority = false, everywhere = false;
    std::string first = "both";  ///< who starts 100 µs before the other

    /// "GEMM 4096x2560x8192", without what is beside.
    std::string work_name() const;
    std::string name() const;
    std::string topology() const { return peers == 1 ? "h200_2" : "h200_4"; }
    bool by_dma() const { return kind.find("dma") != std::string::npos && !local(); }
    bool local() const { return kind.starts_with("local"); }
    /// Kernels that wait for units beside a GEMM on all of them get in by turns sooner and later: of their
    /// times and the GEMMs', means count, of all others medians.
    bool waits() const { return own_kernels() && work_units == 0 && std::holds_alternative<GemmShape>(work); }
    /// By kernels on GPU 0, which compete with its work for compute units.
    bool own_kernels() const { return !by_dma() && !kind.ends_with("out"); }
};

Beside read_beside(ConfigObject& line);

/// Median times in µs: of the work and between ends of the copies of a stream, beside each other and alone;
/// as the microbenchmark takes them. 0 where there are none.
struct BesideTimes {
    double work = 0, work_alone = 0, copy = 0, copy_alone = 0;
};
BesideTimes predict_beside(const Beside& beside, const Machine& machine);

/// From when a copy becomes ready, `wait` after the first of six GEMMs has begun (and `more` of a GEMM), to
/// its end, µs.
double predict_late(const Beside& beside, Seconds wait, double more, const Machine& machine);

}  // namespace overlap
