// Laws of the energy of simulated runs, of every registered schedule on every
// form of workload that it handles.
#include <catch2/catch.hpp>

#include "sim/run/observe.hpp"
#include "sim/topology/device_losses.hpp"
#include "tests/contract/laws.hpp"

namespace overlap::test::energy_laws_test {

TEST_CASE(
    "energy: every schedule of a workload computes for the same joules, and no part is negative but one") {
    const Machine& machine = law_machines().at("h200_4");
    const DeviceEnergy& known = *machine.topology.device().energy;
    std::map<std::string, double> compute;
    const int cases = for_every_schedule([&](const ScheduleEntry& entry, const Workload& workload) {
        INFO(entry.name << " | " << workload.form());
        const TaskGraph graph = build(entry, workload, machine.topology);
        const Costs costs = costs_of(graph, workload, machine);
        const EngineResult simulated = simulate(graph, costs, machine);
        const Energy energy = energy_of(graph, costs, simulated, machine).value();
        const auto [same, is_first] = compute.emplace(workload.form(), energy.compute.si());
        Joules sums;  // a framework's kernels add at an energy of their own
        for (TaskId id = 0; id < graph.size(); ++id)
            if (const auto* sum = std::get_if<ReduceWork>(&graph[id].work);
                sum != nullptr && sum->by_framework)
                sums += (sum->parts + 1) * sum->bytes * known.framework_sum;
        CHECK((energy.compute - sums).si() == Approx(same->second).epsilon(1e-12));
        for (const Joules part :
             {energy.idle, energy.active, energy.compute, energy.hbm, energy.links, energy.copy_kernels})
            CHECK(part.si() >= 0);
        CHECK(energy.power_limit.si() <= 0);
        CHECK((energy.idle + energy.active + energy.compute + energy.hbm + energy.links +
               energy.copy_kernels + energy.power_limit)
                  .si() == Approx(energy.total().si()));
        // Apart from latencies some GPU is always active, and no GPU is active longer than the run.
        const Seconds all = 4.0 * simulated.makespan;
        CHECK(energy.active.si() <= (known.active * all).si() * (1 + 1e-12));
        CHECK(energy.idle.si() == Approx((known.idle * all).si()));
    });
    CHECK(cases >= 70);
    CHECK(compute.size() >= 5);
}

}  // namespace overlap::test::energy_laws_test
