#include "models/cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "sim/topology/device_launch.hpp"

namespace overlap {

Cost kernel_cost(const DeviceLaunch& launch) {
    Cost cost;
    cost.launch.time = launch.kernel;
    cost.end = Completion{.event = launch.event};
    cost.handoffs = {launch.dependency, launch.remote_dependency, launch.flag};
    return cost;
}

Seconds isolated_body(const Cost& cost, const ResourceTable& resources) {
    Seconds body = cost.body;
    for (const Demand& demand : cost.demands)
        body = std::max(body, Seconds(demand.amount / resources[demand.resource].capacity));
    return body;
}

Seconds seen_after(const Polling& polling, Seconds elapsed) {
    // s; an estimate: a ninth of the H200's polling period, so that fits see a slope
    constexpr double blur = 1e-6;
    const double period = polling.period.si(), since = elapsed.si() - polling.first.si();
    const double nearest = std::round(since / period), late = since - nearest * period;
    // Fraction of ends that the poll misses
    const double passed = std::clamp((late + blur) / (2 * blur), 0.0, 1.0);
    return polling.first + Seconds(std::max(nearest + passed, 0.0) * period);
}

Seconds isolated_time(const Cost& cost, const ResourceTable& resources) {
    const Seconds done = cost.launch.time + cost.setup + isolated_body(cost, resources);
    if (const auto* completion = std::get_if<Completion>(&cost.end)) return done + completion->latency;
    return std::max(done, seen_after(std::get<Polling>(cost.end), done));
}

}  // namespace overlap
