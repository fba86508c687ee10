#include <algorithm>
#include <cmath>
#include <optional>

#include "models/cost_model.hpp"
#include "models/gemm_model.hpp"
#include "models/moe_model.hpp"
#include "sim/topology/device_launch.hpp"

namespace overlap {
namespace {

// A grouped GEMM: the rows of each expert are multiplied by that expert's weights, in one kernel. By the fits of
// the device's MoE kernels; where there is none, a batch of GEMMs of the experts that have rows, each padded to whole
// tiles of 64 rows, by the device's GEMM model. The busiest of the GPUs that share the experts is priced.
class GemmGrouped final : public CostModel {
public:
    bool handles(const Task& task) const override {
        const auto* gemm = std::get_if<GemmShape>(&task.work);
        return gemm != nullptr && gemm->groups > 1;
    }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& shape = std::get<GemmShape>(task.work);
        const DeviceSpec& device = machine.topology.device();
        const bool masked = task.gemm_cus > 0 && task.gemm_cus < device.compute_units;
        const int units = masked ? task.gemm_cus : static_cast<int>(device.compute_units);
        const GroupedEstimate& whole = remembered(shape, units, masked, machine);
        Cost cost = kernel_cost(*device.launch);
        cost.body = whole.body;
        const ResourceTable& resources = machine.resources;
        cost.demands.push_back(
            {resources.compute_units(task.gpu), std::min<double>(whole.tiles, units) * cost.body.si()});
        cost.demands.push_back(
            {resources.hbm(task.gpu), std::min(whole.hbm_traffic, device.hbm * cost.body).si()});
        constexpr double most_tiles = 1e9;
        Tiles tiles;
        tiles.count = static_cast<int>(std::clamp(whole.tiles, 1.0, most_tiles));
        tiles.waves = (tiles.count + units - 1) / units;
        cost.claim = Claim{resources.compute_units(task.gpu), 1, std::min(units, tiles.count)};
        cost.claim->parts = tiles;
        return cost;
    }

private:
    /// By the fastest of the fits, as libraries choose their kernels.
    static GroupedEstimate estimate(const GemmShape& shape, int units, bool masked,
                                    const GemmParameters& gemm, const std::vector<MoeParameters>& fits,
                                    Seconds sustained) {
        const ExpertRows rows = rows_of(shape);
        std::optional<GroupedEstimate> best;
        for (MoeParameters fit : fits) {
            if (masked) {
                fit.peak_rate = fit.peak_rate * (units / fit.compute_units);
                fit.compute_units = units;
            }
            const double element = weight_bytes(kernel_format(shape.dtype));
            const double weight = shape.weight_bits > 0 ? shape.weight_bits / 8 : element;
            const GroupedEstimate one = estimate_grouped(
                rows, static_cast<double>(shape.n), static_cast<double>(shape.k), {weight, element}, fit);
            if (!best || one.body < best->body) best = one;
        }
        if (best) {
            best->body += gemm.launch;
            return *best;
        }
        GemmShape batch = shape;
        batch.batch = static_cast<std::int64_t>(std::max(rows.active, 1.0));
        constexpr std::size_t of_64_rows = 2;
        batch.m = std::max<std::int64_t>(
            std::llround(64 * rows.tiles[of_64_rows] / static_cast<double>(batch.batch)), 1);
        const GemmEstimate one = estimate_gemm(batch, gemm, sustained, {.units = masked ? units : 0});
        return {one.total(), one.hbm_traffic, std::max(std::ceil(one.waves * units), 1.0), one.waves};
    }

    // Cached: a schedule has many GEMMs of few shapes, and each estimate deals experts to GPUs.
    const GroupedEstimate& remembered(const GemmShape& shape, int units, bool masked,
                                      const Machine& machine) const {
        const GemmParameters& gemm = machine.calibration.gemm_for(shape.dtype);
        const std::vector<MoeParameters> fits = grouped_fits(machine.calibration.kernels, shape.dtype);
        for (const Known& known : known_)
            if (known.shape == shape && known.units == units && known.sustained == machine.sustained &&
                known.fits == fits && known.gemm == gemm)
                return known.estimate;
        constexpr std::size_t most = 16;
        if (known_.size() == most) known_.clear();
        return known_
            .emplace_back(Known{shape, units, machine.sustained, fits, gemm,
                                estimate(shape, units, masked, gemm, fits, machine.sustained)})
            .estimate;
    }

    struct Known {
        GemmShape shape;
        int units;
        Seconds sustained;
        std::vector<MoeParameters> fits;
        GemmParameters gemm;
        GroupedEstimate estimate;
    };
    mutable std::vector<Known> known_;
};

}  // namespace

std::unique_ptr<CostModel> make_gemm_grouped() {
    return std::make_unique<GemmGrouped>();
}

}  // namespace overlap
