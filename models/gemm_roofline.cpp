#include <algorithm>

#include "models/cost_model.hpp"
#include "sim/topology/device_launch.hpp"

namespace overlap {
namespace {

// The textbook bound: FLOPs at the datasheet rate, each operand through HBM once. It has no tiles,
// waves or cache, so cutting a GEMM costs nothing but launches. A lower bound to compare
// gemm_tiled with, not a prediction.
class GemmRoofline final : public CostModel {
public:
    bool handles(const Task& task) const override { return task.kind() == TaskKind::gemm; }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& shape = std::get<GemmShape>(task.work);
        const DeviceSpec& device = machine.topology.device();
        const auto peak = device.peak.find(shape.dtype);
        if (peak == device.peak.end())
            throw UserError("device " + device.name + " has no peak rate for " + name_of(shape.dtype));
        const Bytes c = matrix_size(shape.m, shape.n, output_type(shape.dtype));
        const Bytes hbm = static_cast<double>(shape.batch) *
                          (matrix_size(shape.m, shape.k, shape.dtype) +
                           static_cast<double>(shape.groups) * matrix_size(shape.k, shape.n, shape.dtype) +
                           (shape.accumulate ? 2.0 : 1.0) * c);
        const bool masked = task.gemm_cus > 0 && task.gemm_cus < device.compute_units;
        const double units = masked ? task.gemm_cus : device.compute_units;
        Cost cost = kernel_cost(*device.launch);
        cost.body =
            std::max(shape.flops() / (peak->second * (units / device.compute_units)), hbm / device.hbm);
        cost.demands.push_back({machine.resources.compute_units(task.gpu), units * cost.body.si()});
        cost.demands.push_back({machine.resources.hbm(task.gpu), hbm.si()});
        return cost;
    }
};

}  // namespace

std::unique_ptr<CostModel> make_gemm_roofline() {
    return std::make_unique<GemmRoofline>();
}

}  // namespace overlap
