#include "sim/report/sweep/sweep_points.hpp"

#include <algorithm>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {

using enum Metric::Better;

const std::array<Metric, column::count> sweep_metrics{
    {{"makespan_us", "makespan", "us", 1, less},
     {"speedup", "speed-up over serial", "x", 1, more},
     {"overlap_efficiency", "overlap efficiency", "%", 100, more},
     {"exposed_comm_us", "exposed communication", "us", 1, less},
     {"serial_us", "serial", "us", 1, neither},
     {"gemm_us", "GEMM alone", "us", 1, neither},
     {"comm_us", "transfers alone", "us", 1, less},
     {"ideal_us", "ideal", "us", 1, neither},
     {"losses_us.decomposition", "decomposition loss", "us", 1, less},
     {"losses_us.contention", "contention loss", "us", 1, less},
     {"losses_us.fill_drain", "fill/drain loss", "us", 1, less},
     {"losses_us.launch", "launch loss", "us", 1, less},
     {"losses_us.packing", "packing loss", "us", 1, less},
     {"losses_us.pattern", "pattern loss", "us", 1, less},
     {"utilisation.cu", "use of compute units", "%", 100, more},
     {"utilisation.hbm", "use of HBM", "%", 100, more},
     {"utilisation.link", "use of links", "%", 100, more},
     {"utilisation.dma", "use of DMA engines", "%", 100, neither},
     {"comm_cus", "compute units for communication", "CU", 1, less},
     {"staging_bytes", "memory for staging", "MB", 1e-6, less},
     {"confidence.makespan_error_pct", "expected error of the makespan", "%", 1, less}}};

std::string axis_label(const Metric& metric) {
    return std::string(metric.label) + " [" + metric.unit + "]";
}

MetricId find_metric(const std::string& name) {
    const auto names = mapped(sweep_metrics, [](const Metric& metric) { return std::string(metric.name); });
    return static_cast<MetricId>(known_place(name, names, "no figure " + in_quotes(name)));
}

std::vector<std::string> Dimension::shown() const {
    return mapped(values, [&](const std::string& one) {
        return !one.empty() ? one : std::string(is_what_if() ? "unchanged" : "(none)");
    });
}

const Dimension* SweepPoints::dimension(const std::string& name) const {
    const auto found = std::ranges::find(dimensions, name, &Dimension::name);
    return found == dimensions.end() ? nullptr : &*found;
}

}  // namespace overlap
