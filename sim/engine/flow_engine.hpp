#pragma once

#include "sim/engine/engine.hpp"

namespace overlap {

/// Is told the rate of every body, in shares of it a second, from the instant at which it changes.
class RateObserver {
public:
    virtual ~RateObserver() = default;
    virtual void rate(Seconds since, TaskId task, double rate) = 0;
};

/// The engine "flow", with a look inside.
EngineResult run_flow(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources,
                      std::uint64_t seed = 0, RateObserver* observer = nullptr);

}  // namespace overlap
