#include "sim/run/steady.hpp"

#include <boost/math/tools/toms748_solve.hpp>
#include <set>

#include "models/gpu_spread.hpp"
#include "models/settled_clock.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/experiment.hpp"
#include "sim/run/observe.hpp"
#include "sim/topology/device_losses.hpp"

namespace overlap {
namespace {

constexpr double least_speed = 0.2;  // far below what a limit of a real board asks for
constexpr double enough = 1e-4;      // of the speed
constexpr std::uintmax_t most_steps = 30;

Scenario at(const Scenario& scenario, double speed) {
    Scenario slowed = scenario;
    slowed.machine = std::make_shared<const Machine>(at_speed(*scenario.machine, speed));
    return slowed;
}

/// Types of GEMMs whose energy is not known.
std::string types_without_energy(const TaskGraph& graph, const Machine& machine) {
    const auto& known = machine.topology.device().energy->gemm;
    std::set<std::string> types;
    for (TaskId id = 0; id < graph.size(); ++id)
        if (const auto* gemm = std::get_if<GemmShape>(&graph[id].work);
            gemm != nullptr && !known.contains(gemm->dtype))
            types.insert(name_of(gemm->dtype));
    return joined(std::vector(types.begin(), types.end()));
}

/// Only the power counts it.
Seconds pause_of(const Scenario& scenario) {
    return scenario.host != nullptr && without(scenario.settings.without).host ? scenario.host->starts.pause
                                                                               : Seconds();
}

Watts power_of(const Scenario& scenario, const TaskGraph& graph) {
    const Experiment experiment(scenario, graph);
    const auto [makespans, simulated] = experiment.median_run();
    const Costs costs = experiment.costs(quantile(makespans, 0.5).second);
    if (simulated.makespan == Seconds()) return Watts();
    const auto energy = energy_of(graph, costs, simulated, *scenario.machine);
    if (!energy)
        throw UserError("steady state: the energy of a FLOP of " +
                        types_without_energy(graph, *scenario.machine) + " was not measured on device " +
                        scenario.machine->topology.device().name);
    const int gpus = scenario.machine->topology.gpus();
    const Seconds period = period_of(scenario, graph, simulated.makespan) + pause_of(scenario);
    const Joules waiting =
        scenario.machine->topology.device().energy->idle * (gpus * (period - simulated.makespan));
    return (energy->total() + waiting) / (gpus * period);
}

}  // namespace

std::string no_power_constants(const Machine& machine, std::span<const DType> operands) {
    const DeviceSpec& device = machine.topology.device();
    if (!device.energy) return "what power its work takes was not measured";
    if (device.energy->power_exponent == 0) return "/energy/power_exponent is not known";
    if (machine.topology.nodes() > 1) return "the power of NICs is not known";
    for (const DType operand : operands)
        if (!device.energy->gemm.contains(operand))
            return "the energy of a FLOP of " + name_of(operand) + " was not measured";
    return "";
}

void require_power_constants(const Machine& machine, const std::string& origin) {
    if (const std::string why = no_power_constants(machine); !why.empty())
        throw UserError(origin + ": /repeat: is \"steady\", but for device " +
                        machine.topology.device().name + " " + why + " (allowed here: \"once\")");
}

SteadyState steady_state(const Scenario& scenario, const TaskGraph& graph) {
    const Watts limit = scenario.machine->topology.device().board_power;
    const Topology& topology = scenario.machine->topology;
    const double most = slowest_of(topology.gpus(), topology.device().energy->spread);
    const auto beyond = [&](double speed) {
        return (most * power_of(at(scenario, speed), graph) - limit).si();
    };
    const double at_full = beyond(1), at_least = at_full > 0 ? beyond(least_speed) : 0;
    double speed = 1;
    if (at_full > 0 && at_least >= 0) speed = least_speed;
    if (at_full > 0 && at_least < 0) {
        std::uintmax_t steps = most_steps;
        const auto close = [](double a, double b) { return std::abs(a - b) < enough; };
        speed = boost::math::tools::toms748_solve(beyond, least_speed, 1.0, at_least, at_full, close, steps)
                    .first;
    }
    return {speed, power_of(at(scenario, speed), graph)};
}

Seconds period_of(const Scenario& scenario, const TaskGraph& graph, Seconds makespan, double calls) {
    const bool hosts = scenario.repeat == Repeat::steady && without(scenario.settings.without).host;
    if (!hosts || scenario.host == nullptr) return makespan;
    return std::max(makespan + replay_gap(graph, *scenario.host), calls * host_time(graph));
}

Scenario settled(const Scenario& scenario, const TaskGraph& graph) {
    if (scenario.repeat != Repeat::steady || scenario.steady) return scenario;
    const SteadyState steady = steady_state(scenario, graph);
    Scenario slowed = at(scenario, steady.gemm_speed);
    slowed.steady = steady;
    return slowed;
}

}  // namespace overlap
