#include "sim/schedules/operator_list.hpp"

namespace overlap {
namespace {

// Every operator whole: one after another, the baseline, or each as soon as its data are complete, so that a
// collective runs beside an independent GEMM.
class WholeOperators final : public Schedule {
public:
    explicit WholeOperators(bool in_sequence) : in_sequence_(in_sequence) {}
    TaskGraph build(const Workload& workload, const Topology& topology,
                    const ScheduleParams& params) const override {
        return build_operators(workload, topology, params, in_sequence_);
    }
    GraphSize size(const Workload& workload, const Topology& topology,
                   const ScheduleParams& params) const override {
        return size_of_operators(workload, topology, params, in_sequence_);
    }
    bool builds_representatives(const Workload& workload, const ScheduleParams& params) const override {
        return in_sequence_ && workload.pair() != nullptr &&
               make_collective_algorithm(params.algorithm)->builds_representatives(params.transfers.commands);
    }
    bool in_sequence() const override { return in_sequence_; }

private:
    bool in_sequence_;
};

}  // namespace

std::unique_ptr<Schedule> make_serial() {
    return std::make_unique<WholeOperators>(true);
}

std::unique_ptr<Schedule> make_concurrent() {
    return std::make_unique<WholeOperators>(false);
}

}  // namespace overlap
