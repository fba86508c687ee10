// Power and clocks on AMD, from the files of the amdgpu driver's hwmon interface (Documentation/gpu/amdgpu in
// Linux): ROCm SMI's structures differ between releases, these do not.
#if !defined(__CUDACC__)

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "models/calibration/hip/gpu.hpp"
#include "models/calibration/hip/telemetry.hpp"

namespace overlap::hip {
namespace {

class HwmonTelemetry : public Telemetry {
public:
    explicit HwmonTelemetry(int gpu) {
        char bus[32] = "";
        check(hipDeviceGetPCIBusId(bus, sizeof bus, gpu));
        std::string name = bus;
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return std::tolower(c); });
        std::error_code none;
        for (const auto& entry :
             std::filesystem::directory_iterator("/sys/bus/pci/devices/" + name + "/hwmon", none))
            folder_ = entry.path();
    }

    Reading read() const override {
        double power = value("power1_average", 1e6);
        if (std::isnan(power)) power = value("power1_input", 1e6);
        return {power, value("freq1_input", 1e6), value("temp1_input", 1e3), std::nan("")};
    }

    double power_limit_W() const override { return value("power1_cap", 1e6); }
    double energy_J() const override { return value("energy1_input", 1e6); }

private:
    double value(const char* file, double units) const {
        std::ifstream stream(folder_ / file);
        double number = 0;
        return stream >> number ? number / units : std::nan("");
    }

    std::filesystem::path folder_;
};

}  // namespace

std::unique_ptr<Telemetry> make_telemetry(int gpu) {
    return std::make_unique<HwmonTelemetry>(gpu);
}

std::string driver_version() {
    std::ifstream file("/sys/module/amdgpu/version");
    std::string text;
    return file >> text ? text : "unknown";
}

}  // namespace overlap::hip
#endif
