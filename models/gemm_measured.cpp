#include <algorithm>

#include "models/cost_model.hpp"
#include "models/gemm_model.hpp"

namespace overlap {

std::unique_ptr<CostModel> make_gemm_tiled();

namespace {

// A library GEMM with a measured shape takes the measured time. A library's heuristic may pick a kernel that
// is far from the fastest (512x2304x16384 on H200: 53 % slower than tiles and waves allow), which no smooth
// model predicts. If the library reported the kernel's tile count, these tiles wait for compute units and
// form the last wave. Other demands, and the slowdown of a hot chip, come from gemm_tiled, as do shapes that
// were not measured. Where a what-if changes the GEMM parameters, the measured time changes by the ratio of
// gemm_tiled's two times. A slightly larger GEMM may therefore be predicted to be faster, as measured.
class GemmMeasured final : public CostModel {
public:
    bool handles(const Task& task) const override { return tiled_->handles(task); }

    Cost cost(const Task& task, const Machine& machine) const override {
        Cost cost = tiled_->cost(task, machine);
        const auto& shape = std::get<GemmShape>(task.work);
        const auto found = machine.calibration.gemm_times.find(shape);
        if (found == machine.calibration.gemm_times.end()) return cost;
        const auto& measured_by = machine.calibration.measured_gemm;
        const auto changed = measured_by.find(shape.dtype);
        const Seconds modelled =
            machine.sustained == Seconds() && task.gemm_cus == 0 && changed == measured_by.end()
                ? cost.body
                : estimate_gemm(shape, changed == measured_by.end()
                                           ? machine.calibration.gemm_for(shape.dtype)
                                           : changed->second)
                      .total();
        const double ratio = found->second.time / modelled;
        cost.body = cost.body * ratio;
        for (Demand& demand : cost.demands) {
            const Resource& resource = machine.resources[demand.resource];
            if (resource.kind == ResourceKind::compute_units)
                demand.amount *= ratio;
            else
                demand.amount = std::min(demand.amount, resource.capacity * cost.body.si());
        }
        const bool masked =
            task.gemm_cus > 0 && task.gemm_cus < machine.calibration.gemm_for(shape.dtype).compute_units;
        if (found->second.tiles > 0 && !masked)
            claim_tiles(*cost.claim, found->second.tiles,
                        static_cast<int>(machine.topology.device().compute_units));
        return cost;
    }

private:
    // Waves of one tile per unit, all of the same length.
    static void claim_tiles(Claim& claim, int tiles, int units) {
        const int waves = (tiles + units - 1) / units;
        const int last = tiles - (waves - 1) * units;
        claim.most = std::min(tiles, units);
        Tiles& parts = claim.parts.emplace<Tiles>(Tiles{tiles, waves});
        if (waves > 1 && last < units) parts.tail = {(waves - 1.0) / waves, last};
    }

    std::unique_ptr<CostModel> tiled_ = make_gemm_tiled();
};

}  // namespace

std::unique_ptr<CostModel> make_gemm_measured() {
    return std::make_unique<GemmMeasured>();
}

}  // namespace overlap
