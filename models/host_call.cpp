#include "models/cost_model.hpp"

namespace overlap {
namespace {

// A call of a GPU's host: its time, known beforehand. It uses nothing of the GPU, and the GPU sees at once what it
// enqueued.
class HostCall final : public CostModel {
public:
    bool handles(const Task& task) const override { return task.kind() == TaskKind::host; }

    Cost cost(const Task& task, const Machine&) const override {
        Cost cost;
        cost.body = std::get<HostWork>(task.work).time;
        return cost;
    }
};

}  // namespace

std::unique_ptr<CostModel> make_host_call() {
    return std::make_unique<HostCall>();
}

}  // namespace overlap
