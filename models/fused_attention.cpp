#include <algorithm>

#include "models/attention_model.hpp"
#include "models/cost_model.hpp"
#include "models/settled_clock.hpp"
#include "sim/topology/device_launch.hpp"

namespace overlap {

std::unique_ptr<CostModel> make_streaming();

namespace {

// Fused attention by the fit of its device and number format; where there is none, `streaming`'s roofline.
class FusedAttention final : public CostModel {
public:
    bool handles(const Task& task) const override {
        const auto* work = std::get_if<MemoryBoundWork>(&task.work);
        return work != nullptr && work->attention.sequences > 0 && work->time == Seconds();
    }

    Cost cost(const Task& task, const Machine& machine) const override {
        const auto& work = std::get<MemoryBoundWork>(task.work);
        AttentionCall call = work.attention;
        const KernelCalibration& fits = machine.calibration.kernels;
        const std::string name = attention_fit(fits, call);
        if (name.ends_with(backward_alone))
            call.kind =
                AttentionKind::prefill;  // the backward pass has a fit of its own, by the same formula
        Seconds time;
        if (call.kind == AttentionKind::decode) {
            if (const auto* fit = find_fit(fits.decode, name))
                time = estimate_decode(call, *fit, clock_of(machine));
        } else if (const auto* fit = find_fit(fits.prefill, name)) {
            time = estimate_prefill(call, *fit) / clock_of(machine);
        }
        if (time == Seconds()) return roofline_->cost(task, machine);
        const DeviceSpec& device = machine.topology.device();
        Cost cost = kernel_cost(*device.launch);
        cost.body = time;
        // Enough tiles, or parts of the context, for all units.
        cost.demands.push_back({machine.resources.compute_units(task.gpu), device.compute_units * time.si()});
        cost.demands.push_back(
            {machine.resources.hbm(task.gpu), std::min(work.read + work.written, device.hbm * time).si()});
        return cost;
    }

private:
    std::unique_ptr<CostModel> roofline_ = make_streaming();
};

}  // namespace

std::unique_ptr<CostModel> make_fused_attention() {
    return std::make_unique<FusedAttention>();
}

}  // namespace overlap
