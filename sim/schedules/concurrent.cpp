#include "sim/schedules/operator_list.hpp"

namespace overlap {
namespace {

// Every operator whole, as soon as its data are complete: a collective runs beside an independent GEMM.
class Concurrent final : public Schedule {
public:
    TaskGraph build(const Workload& workload, const Topology& topology,
                    const ScheduleParams& params) const override {
        return build_operators(workload, topology, params, false);
    }
    GraphSize size(const Workload& workload, const Topology& topology,
                   const ScheduleParams& params) const override {
        return size_of_operators(workload, topology, params, false);
    }
    bool in_sequence() const override { return false; }
};

}  // namespace

std::unique_ptr<Schedule> make_concurrent() {
    return std::make_unique<Concurrent>();
}

}  // namespace overlap
