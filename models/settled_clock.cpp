#include "models/settled_clock.hpp"

namespace overlap {

Machine at_speed(const Machine& machine, double speed) {
    Machine slowed = machine;
    slowed.gemm_speed = speed;
    slowed.sustained = Seconds();
    for (auto& [dtype, gemm] : slowed.calibration.gemm) {
        slowed.calibration.measured_gemm.emplace(dtype, gemm);
        gemm.sustained_slowdown = 0;
        gemm.peak_rate = gemm.peak_rate * speed;
        gemm.unit_bandwidth = gemm.unit_bandwidth * speed;
        gemm.tile_fixed = gemm.tile_fixed / speed;
        gemm.tile_epilogue = gemm.tile_epilogue / speed;
    }
    return slowed;
}

}  // namespace overlap
