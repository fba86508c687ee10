#pragma once

#include <memory>
#include <string>

namespace overlap::hip {

struct Reading {
    double power_W, clock_MHz, temperature_C;
    double throttle;  ///< NVML's bits of clock limits in force; AMD: not a number
};

/// Power and clocks of one GPU: NVML, loaded at run time, or amdgpu's hwmon files. What can't be read is not
/// a number.
class Telemetry {
public:
    virtual ~Telemetry() = default;
    virtual Reading read() const = 0;
    virtual double power_limit_W() const = 0;
    /// Counted since some time in the past.
    virtual double energy_J() const = 0;
};

std::unique_ptr<Telemetry> make_telemetry(int gpu);
/// The kernel driver's version, or "unknown".
std::string driver_version();

}  // namespace overlap::hip
