#pragma once

#include "sim/engine/engine.hpp"

namespace overlap {

/// Receives every change of the rate of a body [fraction of the body a second].
class RateObserver {
public:
    virtual ~RateObserver() = default;
    virtual void rate(Seconds since, TaskId task, double rate) = 0;
};

/// The engine "flow"; `observer` may be null.
EngineResult run_flow(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                      std::uint64_t seed = 0, RateObserver* observer = nullptr);

}  // namespace overlap
