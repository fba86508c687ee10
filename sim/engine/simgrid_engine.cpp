#include <chrono>
#include <sstream>

#include "sim/core/environment.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/installation.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/simgrid_limit.hpp"
#include "sim/engine/simgrid_simulation.hpp"

namespace overlap {
namespace {

/// Time limit of one simulation, over both solvers: with rates of very different magnitude it may never end.
struct TimeLimit {
    double seconds =
        number_from_environment("OVERLAP_SIMGRID_SECONDS", {1e-3, 1e6}).value_or(default_simgrid_seconds);
    ChildProcess::Clock::time_point deadline =
        ChildProcess::Clock::now() +
        std::chrono::duration_cast<ChildProcess::Clock::duration>(std::chrono::duration<double>(seconds));
};

// SimGrid has one engine and one clock a process, and a second simulation continues the clock of the first,
// so that its last digits differ. Each simulation therefore runs in a process of its own.
EngineResult in_child(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                      std::uint64_t seed, const std::string& solver, const TimeLimit& limit) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<TaskTimes> tasks(graph.size());
    static auto* const simulate = reinterpret_cast<decltype(simulate_by_simgrid)*>(
        load_function("overlap_simgrid.so", "simulate_by_simgrid", "engine simgrid"));
    const SharedMemory shared(sizeof(SimgridReached));
    SimgridReached& reached = *new (shared.get()) SimgridReached;
    ChildProcess child(
        [&](ChildProcess::Writer& out) {
            std::vector<TaskTimes> inside;
            simulate(graph, costs, resources, seed, solver, reached, inside);
            out.write(inside.data(), inside.size() * sizeof(TaskTimes));
        },
        limit.deadline);
    try {
        child.read(tasks.data(), tasks.size() * sizeof(TaskTimes));
    } catch (const ChildProcess::TimedOut&) {
        std::ostringstream text;
        text << "engine simgrid: not done after " << limit.seconds << " s: at " << reached.clock * 1e6
             << " us of simulated time " << reached.ended << " of " << graph.size()
             << " tasks had ended, the last to go on was '" << graph[reached.latest].name() << "' of gpu "
             << graph[reached.latest].gpu << ", solver " << solver
             << " (use --engine flow, or set OVERLAP_SIMGRID_SECONDS to allow more)";
        throw UserError(text.str());
    }
    child.finish();
    return finished(graph, std::move(tasks), begin);
}

// The solver "bmf" computes the allocation of the contract, but gives up on some instances ("Unable to find a
// BMF allocation"), typically where two resources of one GPU saturate together, and on every second one with
// weights, which its guesses leave out. "fairbottleneck" never does, but fills resources in rounds of equal
// increments: where tasks share two saturated resources it leaves some of them below their fair share. Observed
// errors: up to a tenth of the makespan in the end of a task, 3e-4 in the makespan.
class SimgridEngine final : public Engine {
public:
    EngineResult run(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                     std::uint64_t seed) const override {
        const TimeLimit limit;
        try {
            return in_child(graph, costs, resources, seed, "bmf", limit);
        } catch (const ChildProcess::Failure&) {
            EngineResult result = in_child(graph, costs, resources, seed, "fairbottleneck", limit);
            result.approximation =
                "SimGrid's BMF solver gave up; its fair bottleneck solver was used, an approximation";
            return result;
        }
    }
};

}  // namespace

std::unique_ptr<Engine> make_simgrid_engine() {
    return std::make_unique<SimgridEngine>();
}

}  // namespace overlap
