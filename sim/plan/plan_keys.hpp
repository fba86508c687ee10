#pragma once

#include "sim/core/input_keys.hpp"
#include "sim/plan/plan.hpp"
#include "sim/workload/workload.hpp"

// Keys of a plan beside its tasks and places.
namespace overlap {

struct PlanHead {
    std::string description;
    int gpus = 0;
    Json config = Json::object();
    bool spans = false;  ///< read by replay
    PlanMeasure measure;
    ListOrder order = ListOrder::program;
    std::vector<std::string> streams;
    std::string not_placed;
};
InputKeys<PlanHead> plan_head_keys();
InputKeys<Buffer> buffer_keys();

}  // namespace overlap
