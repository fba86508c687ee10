// The native engine against SimGrid, its independent reference. Where SimGrid's exact solver gives up, its
// answer is an approximation and decides nothing; the laws of
// tests/unit/fair_share_test.cpp hold there all the same.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>

#include "sim/engine/flow_engine.hpp"
#include "sim/pricing/effects.hpp"
#include "sim/run/run.hpp"
#include "tests/allocation_laws.hpp"
#include "tests/contract/random_case.hpp"
#include "tests/resolved.hpp"
#include "tests/sample.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::engine_agreement_test {
namespace {

constexpr double tolerance = 1e-6;

/// The laws of every instant: capacities kept, nothing left idle that somebody could
/// use; and in the end each body whole.
class Laws final : public RateObserver {
public:
    void rate(Seconds since, TaskId task, double rate) override { changes_.push_back({since, task, rate}); }

    int check(CostView costs, const EngineResult& result, const ResourceTable& resources) {
        std::vector<double> rates(costs.size()), done(costs.size());
        std::vector<Cost> as_run = costs.each();
        int bound = 0;
        for (std::size_t i = 0; i < changes_.size();) {
            const Seconds now = changes_[i].since;
            for (; i < changes_.size() && changes_[i].since == now; ++i)
                rates[changes_[i].task] = changes_[i].rate;
            if (i == changes_.size()) break;
            const Seconds next = changes_[i].since;
            for (TaskId id = 0; id < rates.size(); ++id) done[id] += rates[id] * (next - now).si();
            // Within a few femtoseconds dates in seconds don't tell who has ended.
            if ((next - now).si() < 1e-14) continue;
            // Blocks that share units have a top rate of their own (tests/unit/tile_waves_test.cpp).
            for (TaskId id = 0; id < rates.size(); ++id)
                if (claimed<Blocks>(costs[id]) != nullptr && rates[id] > 0)
                    as_run[id].body = Seconds(1 / rates[id]);
            bound += check_allocation(as_run, rates, capacities(costs, result, resources, (now + next) / 2),
                                      resources);
        }
        for (TaskId id = 0; id < rates.size(); ++id) {
            REQUIRE(rates[id] == 0);
            const bool takes_time = costs[id].body > Seconds() || !costs[id].demands.empty();
            // Whole, but for the femtosecond by which an end is rounded.
            // One that lacked units for its tiles may take longer.
            const bool tiles = claimed<Tiles>(costs[id]) != nullptr;
            if (takes_time && (!tiles || done[id] < 1)) REQUIRE(done[id] == Approx(1).epsilon(1e-7));
        }
        return bound;
    }

private:
    static std::vector<double> capacities(CostView costs, const EngineResult& result,
                                          const ResourceTable& resources, Seconds now) {
        std::vector<double> held(resources.size()), largest(resources.size()), left;
        for (TaskId id = 0; id < costs.size(); ++id) {
            const Seconds body_end = result.tasks[id].done;
            if (now < result.tasks[id].body || now > body_end) continue;
            for (const Hold& hold : costs[id].holds) {
                double& value = (hold.adds_up ? held : largest)[hold.resource];
                value = hold.adds_up ? value + hold.units : std::max(value, hold.units);
            }
        }
        for (ResourceId id = 0; id < resources.size(); ++id)
            left.push_back(std::max(resources[id].capacity - held[id] - largest[id],
                                    least_capacity(resources[id].capacity)));
        return left;
    }

    struct Change {
        Seconds since;
        TaskId task;
        double rate;
    };
    std::vector<Change> changes_;
};

struct Agreement {
    bool decided = false;  ///< SimGrid kept to the contract
    double error = 0;      ///< largest difference of an end, in shares of the makespan
    EngineResult flow;
};

/// The end of each task. Bodies that are over at the same instant on one GPU which sees ends one after another
/// (Completion::apart) are seen in an order that rounding decides: their ends are exchanged into the order of tasks.
std::vector<Seconds> ends_of(const TaskGraph& graph, CostView costs, const EngineResult& result) {
    const Seconds instant = 1e-12 * result.makespan;
    std::map<int, std::vector<TaskId>> by_gpu;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto* end = std::get_if<Completion>(&costs[id].end);
        if (end != nullptr && end->apart > Seconds()) by_gpu[graph[id].gpu].push_back(id);
    }
    std::vector<Seconds> ends;
    for (const TaskTimes& times : result.tasks) ends.push_back(times.end);
    for (auto& [gpu, tasks] : by_gpu) {
        const auto done = [&](TaskId id) { return result.tasks[id].done; };
        std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) { return done(a) < done(b); });
        for (auto first = tasks.begin(); first != tasks.end();) {
            const auto last = std::find_if(first, tasks.end(),
                                           [&](TaskId id) { return done(id) - done(*first) > instant; });
            std::vector<TaskId> tied(first, last);
            std::vector<Seconds> seen;
            for (const TaskId id : tied) seen.push_back(result.tasks[id].end);
            std::sort(tied.begin(), tied.end());
            std::sort(seen.begin(), seen.end());
            for (std::size_t i = 0; i < tied.size(); ++i) ends[tied[i]] = seen[i];
            first = last;
        }
    }
    return ends;
}

Agreement compare(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                  std::uint64_t seed = 0, RateObserver* observer = nullptr) {
    const EngineResult reference = make_engine("simgrid")->run(graph, costs, resources, seed);
    Agreement result{reference.approximation.empty(), 0, run_flow(graph, costs, resources, seed, observer)};
    const std::vector<Seconds> expected = ends_of(graph, costs, reference),
                               found = ends_of(graph, costs, result.flow);
    for (TaskId id = 0; id < graph.size(); ++id)
        result.error = std::max(result.error, std::abs((found[id] - expected[id]).si()));
    if (reference.makespan.si() > 0) result.error /= reference.makespan.si();
    return result;
}

void compare_random(unsigned graphs) {
    unsigned decided = 0, undecided = 0, bound = 0;
    for (unsigned seed = 0; seed < graphs; ++seed) {
        const unsigned size = 3 + seed % 30;
        const RandomCase whole(seed, size);
        Laws laws;
        const Agreement both = compare(whole.graph, whole.costs, mesh(seed), seed, &laws);
        ++(both.decided ? decided : undecided);

        INFO("seed " << seed);
        bound += static_cast<unsigned>(laws.check(whole.costs, both.flow, mesh(seed)));
        std::vector<Seconds> bodies;
        for (const Cost& cost : whole.costs) bodies.push_back(isolated_body(cost, mesh(seed)));
        REQUIRE(both.flow.makespan.si() >= whole.graph.critical_path(bodies).si() * (1 - 1e-9));
        for (TaskId id = 0; id < size; ++id) {  // nothing is faster than alone
            const double body = (both.flow.tasks[id].done - both.flow.tasks[id].body).si();
            REQUIRE(body >= bodies[id].si() * (1 - 1e-9) - 2e-15);
        }
        if (!both.decided || both.error <= tolerance) continue;
        for (unsigned smaller = 1; smaller <= size; ++smaller) {
            const RandomCase part(seed, smaller);
            const Agreement small = compare(part.graph, part.costs, mesh(seed), seed);
            if (!small.decided || small.error <= tolerance) continue;
            FAIL("seed " << seed << ", first " << smaller << " tasks: ends differ by " << small.error);
        }
        FAIL("seed " << seed << ": ends differ by " << both.error);
    }
    std::cout << "engines compared on " << decided << " random graphs; SimGrid gave up on " << undecided
              << "; " << bound << " bottlenecks checked\n";
    CHECK(decided > 9 * undecided);
    CHECK(bound > graphs);
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(source_folder / "configs" / folder))
        names.push_back(entry.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// One run, if the schedule serves the workload.
std::optional<Agreement> compare_shipped(const std::string& topology, const ScheduleEntry& entry,
                                         const std::string& workload) {
    const Json json = read_json_file(shipped.find("workloads", workload));
    if (!entry.handles(read_workload({json, workload}))) return std::nullopt;
    RunConfig config;
    config.origin = "test";
    config.topology = topology;
    config.schedule = entry.name;
    config.workload = workload;
    const auto& accepted = entry.parameters;
    if (std::find(accepted.begin(), accepted.end(), "chunks") != accepted.end()) config.params["chunks"] = 2;
    const Scenario scenario = resolved(config);
    const TaskGraph graph = scenario.graph();
    const Costs costs = price(graph, scenario.workload, *scenario.machine, CostModels(), Effects());
    Laws laws;
    const Agreement both = compare(graph, costs, scenario.machine->resources, 0, &laws);
    // Where the reference gives up, the laws decide.
    if (!both.decided) laws.check(costs, both.flow, scenario.machine->resources);
    return both;
}

}  // namespace

TEST_CASE("the engines agree on random task graphs") {
    compare_random(1000);
}

TEST_CASE("the engines agree on ten times as many random task graphs", "[.all]") {
    compare_random(10'000);
}

// A sample: each machine with one of the workloads. With OVERLAP_ALL_SHIPPED=1 on every topology of at most 16 GPUs, or with
// the name of one on that, and every workload, which takes minutes; larger ones are beyond SimGrid.
TEST_CASE("the engines agree on shipped machines, schedules and workloads") {
    std::vector<std::string> machines{"mi300x_8", "mi250x_8", "h200_4", "ring_8", "mi300x_16"};
    std::vector<std::string> workloads{"llama3_70b_down_forward", "mixtral_8x7b_combine"};
    if (const char* asked = std::getenv("OVERLAP_ALL_SHIPPED"); asked != nullptr) {
        machines = names_in("topologies");
        const bool all = asked == std::string("1");
        std::erase_if(machines, [&](const std::string& name) {
            return all ? shipped.topology(name).gpus() > 16 : name != asked;
        });
        workloads = names_in("workloads");
    }
    const bool sample = !every_case() && std::getenv("OVERLAP_ALL_SHIPPED") == nullptr;
    unsigned decided = 0, undecided = 0;
    double largest = 0;
    std::map<std::string, unsigned> given_up;
    for (std::size_t machine = 0; machine < machines.size(); ++machine)
        for (const ScheduleEntry& entry : schedules())
            for (std::size_t one = 0; one < workloads.size(); ++one) {
                if (sample && one != machine % workloads.size()) continue;
                const std::string &topology = machines[machine], &workload = workloads[one];
                INFO(topology << " " << entry.name << " " << workload);
                std::optional<Agreement> both;
                try {
                    both = compare_shipped(topology, entry, workload);
                } catch (const UserError&) {  // operands too large for the memory, a dtype that it has not
                    continue;
                }
                if (!both) continue;
                ++(both->decided ? decided : undecided);
                if (both->decided) {
                    CHECK(both->error <= tolerance);
                    largest = std::max(largest, both->error);
                } else {
                    ++given_up[topology + " " + entry.name];
                }
            }
    std::cout << "engines compared on " << decided << " shipped cases, largest difference of an end "
              << largest << " of the makespan; SimGrid gave up on " << undecided << '\n';
    for (const auto& [name, times] : given_up) std::cout << "  gave up: " << name << ", " << times << '\n';
    CHECK(decided + undecided >= (sample ? 50U : 100U));
    CHECK(decided >= (sample                ? 50U
                      : machines.size() > 1 ? 100U
                                            : 1U));  // on torus_4x4 SimGrid gives up nine times in ten
}

TEST_CASE("the engines agree on collectives by every set of DMA commands") {
    unsigned compared = 0;
    for (const std::string kind : {"all_gather", "all_to_all"})
        for (const std::string commands :
             {"copy", kind == "all_gather" ? "broadcast" : "swap", "back_to_back"})
            for (const bool prelaunch : {false, true})
                for (const double bytes : {1e3, 3e6, 1e8}) {
                    INFO(kind << " of " << bytes << " by " << commands << (prelaunch ? ", prelaunched" : ""));
                    RunConfig config;
                    config.origin = "test";
                    config.topology = "mi300x_8";
                    config.schedule = "serial";
                    config.params = {{"dma_commands", commands}, {"prelaunch", prelaunch}};
                    const Json collective{
                        {"name", "c"}, {"type", "collective"}, {"collective", kind}, {"bytes", bytes}};
                    config.workload = {{"operators", Json::array({collective})}};
                    const Scenario scenario = resolved(config);
                    const TaskGraph graph = scenario.graph();
                    const Costs costs =
                        price(graph, scenario.workload, *scenario.machine, CostModels(), Effects());
                    const Agreement both = compare(graph, costs, scenario.machine->resources);
                    REQUIRE(both.decided);
                    CHECK(both.error <= tolerance);
                    ++compared;
                }
    CHECK(compared == 2 * 3 * 2 * 3);
}

TEST_CASE("the engines agree on lists whose pairs are cut, and on groups") {
    const Json list{{"topology", "h200_4"}, {"workload", "llama3_70b_mlp_layer"}};
    Json one = list, chosen = list, groups = list;
    one.update({{"schedule", "hetero_fused_1d"}, {"params", {{"chunks", 2}}}});
    chosen.update({{"schedule", "concurrent"},
                   {"schedules",
                    {{"gate_up", {{"schedule", "flag_gated"}, {"params", {{"chunks", 4}}}}},
                     {"down", {{"schedule", "uniform_fused_1d"}, {"params", {{"chunks", 2}}}}}}}});
    const Json gather{{"name", "in"},
                      {"type", "collective"},
                      {"collective", "all_gather"},
                      {"bytes", 1 << 28},
                      {"group", {{"size", 2}, {"stride", 2}}}};
    groups.update({{"schedule", "serial"}, {"workload", {{"operators", Json::array({gather})}}}});
    for (const Json& config : {one, chosen, groups}) {
        INFO(config.dump());
        const Scenario scenario = resolved(read_run_config(config, "test")).of_all_gpus();
        const TaskGraph graph = scenario.graph();
        const Costs costs = price(graph, scenario.workload, *scenario.machine, CostModels(), Effects());
        const Agreement both = compare(graph, costs, scenario.machine->resources);
        CHECK(both.decided);
        CHECK(both.error <= 1e-9);
    }
}

}  // namespace overlap::test::engine_agreement_test
