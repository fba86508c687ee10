#include "sim/quotient/likeness.hpp"

#include <algorithm>
#include <tuple>

namespace overlap {
namespace {

bool is_like(const Claim& claim, const Claim& other) {
    return claim.least == other.least && claim.most == other.most && claim.yields == other.yields &&
           claim.yields_after == other.yields_after && claim.as_enqueued == other.as_enqueued &&
           claim.parts == other.parts;
}
bool is_like(const Demand& demand, const Demand& other) {
    return demand.amount == other.amount && demand.weight == other.weight;
}
bool is_like(const Hold& hold, const Hold& other) {
    return hold.units == other.units && hold.adds_up == other.adds_up;
}

}  // namespace

bool is_like(const Task& task, const Task& other, const Rotations& rotations) {
    const auto facts = [](const Task& t) {
        return std::tie(t.work, t.gpu, t.stream, t.chunk, t.priority, t.gemm_cus, t.cu_mask, t.persistent,
                        t.continues, t.op);
    };
    const Task seen = seen_by_representative(task, rotations);
    return facts(seen) == facts(other);
}

bool is_like(const Cost& cost, const Cost& other) {
    const auto alike = [](const auto& a, const auto& b) { return is_like(a, b); };
    return cost.launch == other.launch && cost.setup == other.setup &&
           cost.switch_over == other.switch_over && cost.body == other.body && cost.end == other.end &&
           cost.awaited == other.awaited && cost.handoffs == other.handoffs &&
           cost.claim.has_value() == other.claim.has_value() &&
           (!cost.claim || is_like(*cost.claim, *other.claim)) &&
           std::equal(cost.demands.begin(), cost.demands.end(), other.demands.begin(), other.demands.end(),
                      alike) &&
           std::equal(cost.holds.begin(), cost.holds.end(), other.holds.begin(), other.holds.end(), alike);
}

}  // namespace overlap
