#pragma once

#include <string>

#include "models/cost_model.hpp"
#include "sim/calibrate/measurements/measurement_file.hpp"

namespace overlap {

/// Work with copies beside it: an `interference` or `late_copy` case (models/calibration/hip/cases/as_plans.py).
struct Beside {
    Work work;           ///< on GPU 0: a GEMM, or a copy within it
    int work_units = 0;  ///< compute units that the GEMM is limited to; 0: all
    std::string kind;    ///< "dma_in", "cu_push", …
    int peers = 1, blocks = 0;
    Bytes size;
    bool spread_sizes = false;  ///< copies of half to all of `size` (size_of in the .cpp)
    bool high_priority = false, everywhere = false;
    std::string first = "both";  ///< which of the two starts 100 µs earlier

    /// "GEMM 4096x2560x8192", without the copies.
    std::string work_name() const;
    std::string name() const;
    int gpus() const { return peers + 1; }
    bool by_dma() const { return kind.find("dma") != std::string::npos && !local(); }
    bool local() const { return kind.starts_with("local"); }
    /// Kernels that wait for units of a GEMM on all units start sooner or later at random: the mean counts
    /// for their times and the GEMMs', for all others the median.
    bool waits() const { return own_kernels() && work_units == 0 && std::holds_alternative<GemmShape>(work); }
    /// Copies by kernels on GPU 0, which compete with its work for compute units.
    bool own_kernels() const { return !by_dma() && !kind.ends_with("out"); }
};

Beside read_beside(ConfigObject& line);

/// Median times in µs of the work and between ends of a stream's copies, beside each other and alone, taken
/// as the microbenchmark takes them; of copies of spread sizes, mean times for `size`. 0 if there are none.
struct BesideTimes {
    double work = 0, work_alone = 0, copy = 0, copy_alone = 0;
};
BesideTimes predict_beside(const Beside& beside, const Machine& machine);

/// Time in µs from when a copy becomes ready to its end. It becomes ready `wait` plus `more` of a GEMM's time
/// after the first of six GEMMs began.
double predict_late(const Beside& beside, Seconds wait, double more, const Machine& machine);

}  // namespace overlap
