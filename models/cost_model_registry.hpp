#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/cost_model.hpp"

namespace overlap {

struct CostModelEntry {
    std::string name;
    std::string handles;  ///< kind of task it prices; the first entry of a kind is the default
    std::string summary;  ///< one sentence: the formula, and what it ignores
    std::unique_ptr<CostModel> (*make)();
};

std::span<const CostModelEntry> cost_models();

/// The default cost model of each kind of task, replaced by the models in `chosen` for the kinds they handle.
/// Throws UserError for an unknown name.
class CostModels {
public:
    explicit CostModels(std::span<const std::string> chosen = {});
    Cost cost(const Task& task, const Machine& machine) const;

private:
    std::vector<std::unique_ptr<CostModel>> models_;
};

}  // namespace overlap
