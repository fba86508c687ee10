#include "models/cost_model.hpp"

#include <algorithm>

namespace overlap {

Seconds isolated_body(const Cost& cost, const ResourceTable& resources) {
    Seconds body = cost.body;
    for (const Demand& demand : cost.demands)
        body = std::max(body, Seconds(demand.amount / resources[demand.resource].capacity));
    return body;
}

Seconds isolated_time(const Cost& cost, const ResourceTable& resources) {
    return cost.launch + cost.setup + isolated_body(cost, resources) + cost.completion;
}

}  // namespace overlap
