#pragma once

#include <memory>
#include <string>

namespace overlap::hip {

struct Reading {
    double power_W, clock_MHz, temperature_C;
    double throttle;  ///< NVML's bits of clock limits in force; AMD: NaN
};

/// Power and clocks of one GPU: NVML, loaded at run time, or amdgpu's hwmon files. Values
/// that can't be read are NaN.
class Telemetry {
public:
    virtual ~Telemetry() = default;
    virtual Reading read() const = 0;
    virtual double power_limit_W() const = 0;
    /// Energy counter, with an arbitrary start.
    virtual double energy_J() const = 0;
};

std::unique_ptr<Telemetry> make_telemetry(int gpu);
/// The kernel driver's version, or "unknown".
std::string driver_version();

}  // namespace overlap::hip
