#include "models/settled_clock.hpp"

#include <cmath>

#include "sim/topology/device_losses.hpp"

namespace overlap {

Machine at_speed(const Machine& machine, double speed) {
    Machine slowed = machine;
    slowed.gemm_speed = speed;
    slowed.sustained = Seconds();
    for (auto& [dtype, gemm] : slowed.calibration.gemm) {
        slowed.calibration.measured_gemm.emplace(dtype, gemm);
        gemm.sustained.slowdown = 0;
        gemm.peak_rate = gemm.peak_rate * speed;
        gemm.memory.unit_bandwidth = gemm.memory.unit_bandwidth * speed;
        gemm.tile.fixed = gemm.tile.fixed / speed;
        gemm.tile.epilogue = gemm.tile.epilogue / speed;
    }
    return slowed;
}

double clock_of(const Machine& machine) {
    const auto& energy = machine.topology.device().energy;
    return energy ? std::pow(machine.gemm_speed, energy->clock_exponent) : machine.gemm_speed;
}

}  // namespace overlap
