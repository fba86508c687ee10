#include "sim/schedules/operator_list.hpp"

namespace overlap {
namespace {

// The baseline: every operator whole, one after another.
class Serial final : public Schedule {
public:
    TaskGraph build(const Workload& workload, const Topology& topology,
                    const ScheduleParams& params) const override {
        return build_operators(workload, topology, params, true);
    }
    GraphSize size(const Workload& workload, const Topology& topology,
                   const ScheduleParams& params) const override {
        return size_of_operators(workload, topology, params, true);
    }
    bool builds_representatives(const Workload& workload, const ScheduleParams& params) const override {
        return workload.pair() != nullptr && make_collective_algorithm(params.algorithm)
                                                 ->builds_representatives(params.transfers.commands);
    }
};

}  // namespace

std::unique_ptr<Schedule> make_serial() {
    return std::make_unique<Serial>();
}

}  // namespace overlap
