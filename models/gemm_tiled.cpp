#include <algorithm>
#include <cmath>

#include "models/cost_model.hpp"
#include "models/gemm_model.hpp"
#include "sim/topology/device_launch.hpp"

namespace overlap {
namespace {

// A library GEMM by the fitted tile and wave model of gemm_model.hpp.
class GemmTiled final : public CostModel {
public:
    bool handles(const Task& task) const override { return task.kind() == TaskKind::gemm; }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& shape = std::get<GemmShape>(task.work);
        const DeviceSpec& device = machine.topology.device();
        const GemmParameters& parameters = machine.calibration.gemm_for(shape.dtype);
        const int units = task.gemm_cus < parameters.compute_units ? task.gemm_cus : 0;
        const GemmEstimate& estimate =
            remembered({shape, {units, task.cu_mask, task.persistent}}, parameters, machine.sustained);
        Cost cost = kernel_cost(*device.launch);
        cost.body = estimate.launch + estimate.body;
        const ResourceTable& resources = machine.resources;
        // A what-if may give the GEMM parameters more units than the device has.
        const double busy = std::min(estimate.compute_units_busy, device.compute_units);
        cost.demands.push_back({resources.compute_units(task.gpu), busy * estimate.body.si()});
        // The fitted time already includes memory; the demands only describe
        // what the GEMM leaves to other tasks.
        cost.demands.push_back(
            {resources.hbm(task.gpu), std::min(estimate.hbm_traffic, device.hbm * cost.body).si()});
        cost.claim = claim_of(estimate, resources.compute_units(task.gpu),
                              units > 0 ? units : static_cast<int>(device.compute_units));
        return cost;
    }

private:
    struct OnUnits {
        GemmShape shape;
        GemmRun run;
        friend bool operator==(const OnUnits&, const OnUnits&) = default;
    };

    // One unit per tile. Units without a tile in the last wave come free when that wave begins.
    static Claim claim_of(const GemmEstimate& estimate, ResourceId resource, int units) {
        Claim claim{resource, 1, units};
        constexpr double most_tiles = 1e9;  // with more tiles the GEMM exceeds the simulated time range
        Tiles tiles;
        tiles.count = static_cast<int>(std::clamp(std::ceil(estimate.waves * units - 1e-6), 1.0, most_tiles));
        tiles.waves = (tiles.count + units - 1) / units;
        if (estimate.last_wave < 1) tiles.tail = {estimate.last_wave, static_cast<int>(estimate.last_tiles)};
        claim.parts = tiles;
        if (estimate.waves < 1) claim.most = std::max(static_cast<int>(std::ceil(estimate.waves * units)), 1);
        return claim;
    }

    // Cached: a schedule has many GEMMs of few shapes, and each estimate tries every tile.
    const GemmEstimate& remembered(const OnUnits& gemm, const GemmParameters& parameters,
                                   Seconds busy) const {
        if (busy != busy_ || parameters != parameters_) {
            estimates_.clear();
            parameters_ = parameters;
            busy_ = busy;
        }
        for (const auto& [known, estimate] : estimates_)
            if (known == gemm) return estimate;
        if (estimates_.size() == most_remembered) estimates_.clear();
        return estimates_.emplace_back(gemm, estimate_gemm(gemm.shape, parameters, busy, gemm.run)).second;
    }

    static constexpr std::size_t most_remembered = 16;
    mutable GemmParameters parameters_;
    mutable Seconds busy_;
    mutable std::vector<std::pair<OnUnits, GemmEstimate>> estimates_;
};

}  // namespace

std::unique_ptr<CostModel> make_gemm_tiled() {
    return std::make_unique<GemmTiled>();
}

}  // namespace overlap
