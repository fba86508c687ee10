#include <algorithm>

#include "models/cost_model.hpp"
#include "models/gemm_model.hpp"

namespace overlap {
namespace {

// A library GEMM by the fitted tile and wave model of gemm_model.hpp.
class GemmTiled final : public CostModel {
public:
    bool handles(const Task& task) const override { return task.kind() == TaskKind::gemm; }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& shape = std::get<GemmShape>(task.work);
        const DeviceSpec& device = machine.topology.device();
        const GemmEstimate& estimate =
            remembered(shape, machine.calibration.gemm_for(shape.dtype), machine.sustained);
        Cost cost;
        cost.launch = device.launch.kernel;
        cost.body = estimate.launch + estimate.body;
        cost.handoff = device.launch.dependency;
        cost.remote_handoff = device.launch.remote_dependency;
        cost.flag = device.launch.flag;
        const ResourceTable& resources = machine.resources;
        cost.demands.push_back(
            {resources.compute_units(task.gpu), estimate.compute_units_busy * estimate.body.si()});
        // The fitted time decides how fast the GEMM is alone; its traffic says what it leaves to others.
        cost.demands.push_back(
            {resources.hbm(task.gpu), std::min(estimate.hbm_traffic, device.hbm * cost.body).si()});
        return cost;
    }

private:
    // A schedule has few shapes and many GEMMs of each; an estimate tries every tile.
    const GemmEstimate& remembered(const GemmShape& shape, const GemmParameters& parameters,
                                   Seconds busy) const {
        if (busy != busy_ || parameters != parameters_) {
            estimates_.clear();
            parameters_ = parameters;
            busy_ = busy;
        }
        for (const auto& [known, estimate] : estimates_)
            if (known == shape) return estimate;
        if (estimates_.size() == most_remembered) estimates_.clear();
        return estimates_.emplace_back(shape, estimate_gemm(shape, parameters, busy)).second;
    }

    static constexpr std::size_t most_remembered = 16;
    mutable GemmParameters parameters_;
    mutable Seconds busy_;
    mutable std::vector<std::pair<GemmShape, GemmEstimate>> estimates_;
};

}  // namespace

std::unique_ptr<CostModel> make_gemm_tiled() {
    return std::make_unique<GemmTiled>();
}

}  // namespace overlap
