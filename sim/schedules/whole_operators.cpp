#include "sim/schedules/operator_list.hpp"

// Every operator whole: one after another, the baseline, or each as soon as its data are complete, so that a
// collective runs beside an independent GEMM.
namespace overlap {

void add_serial(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                TaskGraph& graph) {
    add_operators(workload, topology, params, true, graph);
}

void add_concurrent(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                    TaskGraph& graph) {
    add_operators(workload, topology, params, false, graph);
}

}  // namespace overlap
