// Power and clocks on NVIDIA. NVML comes with the driver, so it is loaded at run time and declared here after
// its documented C API.
#if defined(__CUDACC__)

#include <cmath>

#include "models/calibration/hip/gpu.hpp"
#include "models/calibration/hip/nvml.hpp"
#include "models/calibration/hip/telemetry.hpp"

namespace overlap::hip {
namespace {

using Handle = void*;
constexpr unsigned clock_sm = 1, sensor_gpu = 0, field_power_instant = 186;

/// nvmlFieldValue_t. On Hopper the plain power query is a mean over a second; this field is instantaneous.
struct FieldValue {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type, status;
    union {
        unsigned whole;
        double real;
        unsigned long long big;
    } value;
};

struct Nvml {
    int (*handle)(const char*, Handle*) = nullptr;
    int (*fields)(Handle, int, FieldValue*) = nullptr;
    int (*clock)(Handle, unsigned, unsigned*) = nullptr;
    int (*temperature)(Handle, unsigned, unsigned*) = nullptr;
    int (*throttle)(Handle, unsigned long long*) = nullptr;
    int (*limit)(Handle, unsigned*) = nullptr;
    int (*energy)(Handle, unsigned long long*) = nullptr;
    int (*driver)(char*, unsigned) = nullptr;

    Nvml() {
        const NvmlLibrary library;
        library.load("nvmlDeviceGetHandleByPciBusId_v2", handle);
        library.load("nvmlDeviceGetFieldValues", fields);
        library.load("nvmlDeviceGetClockInfo", clock);
        library.load("nvmlDeviceGetTemperature", temperature);
        library.load("nvmlDeviceGetCurrentClocksThrottleReasons", throttle);
        library.load("nvmlDeviceGetEnforcedPowerLimit", limit);
        library.load("nvmlDeviceGetTotalEnergyConsumption", energy);
        library.load("nvmlSystemGetDriverVersion", driver);
    }
};

const Nvml& nvml() {
    static const Nvml library;
    return library;
}

class NvmlTelemetry : public Telemetry {
public:
    explicit NvmlTelemetry(int gpu) {
        char bus[32] = "";
        check(hipDeviceGetPCIBusId(bus, sizeof bus, gpu));
        if (!nvml().handle || nvml().handle(bus, &device_) != 0) device_ = nullptr;
    }

    Reading read() const override {
        Reading reading{std::nan(""), std::nan(""), std::nan(""), std::nan("")};
        if (!device_) return reading;
        FieldValue power{};
        power.field = field_power_instant;
        if (nvml().fields && nvml().fields(device_, 1, &power) == 0 && power.status == 0)
            reading.power_W = power.value.whole / 1e3;
        unsigned value = 0;
        if (nvml().clock && nvml().clock(device_, clock_sm, &value) == 0) reading.clock_MHz = value;
        if (nvml().temperature && nvml().temperature(device_, sensor_gpu, &value) == 0)
            reading.temperature_C = value;
        unsigned long long reasons = 0;
        if (nvml().throttle && nvml().throttle(device_, &reasons) == 0)
            reading.throttle = static_cast<double>(reasons);
        return reading;
    }

    double power_limit_W() const override {
        unsigned milliwatts = 0;
        const bool known = device_ && nvml().limit && nvml().limit(device_, &milliwatts) == 0;
        return known ? milliwatts / 1e3 : std::nan("");
    }

    double energy_J() const override {
        unsigned long long millijoules = 0;
        const bool known = device_ && nvml().energy && nvml().energy(device_, &millijoules) == 0;
        return known ? static_cast<double>(millijoules) / 1e3 : std::nan("");
    }

private:
    Handle device_ = nullptr;
};

}  // namespace

std::unique_ptr<Telemetry> make_telemetry(int gpu) {
    return std::make_unique<NvmlTelemetry>(gpu);
}

std::string driver_version() {
    char text[96] = "";
    return nvml().driver && nvml().driver(text, sizeof text) == 0 ? text : "unknown";
}

}  // namespace overlap::hip
#endif
