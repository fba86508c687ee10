// A planted symmetry of a random graph is found, and is gone where one GPU differs in one task.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <random>

#include "sim/engine/engine.hpp"
#include "sim/quotient/representatives.hpp"
#include "tests/contract/quotient_times.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::planted_quotients_test {
namespace {

constexpr int gpus = 4;

/// Four GPUs on a full mesh that do the same: tasks at random, and in each three turned ones.
class PlantedCase {
public:
    /// `polled`: half are copies by DMA whose ends are polled for, and times are few, so that much happens at one instant.
    explicit PlantedCase(unsigned seed, bool polled = false)
        : random_(seed), machine_(machine_of(topology_of(gpus, group("full_mesh")))), polled_(polled) {
        const unsigned kinds = 4 + below(12);
        for (unsigned kind = 0; kind < kinds; ++kind) add(kind);
    }

    const Machine& machine() const { return machine_; }
    Rotations rotations() const { return {machine_.topology, 1, 1}; }
    std::optional<Quotient> quotient() const {
        return quotient_of(graph(), costs, rotations(), machine_.resources);
    }
    /// With unequal weights several allocations are fair.
    bool weighs() const { return weighs_; }
    TaskGraph graph() const {
        TaskGraph result;
        for (const Task& task : tasks) result.add(task);
        for (const Edge& edge : edges) result.add_edge(edge);
        return result;
    }

    /// Whether tasks that are alike have different times.
    bool gpus_differ(const std::vector<TaskTimes>& times) const {
        for (TaskId id = 0; id < times.size(); ++id)
            if (times[id].end != times[id - id % gpus].end) return true;
        return false;
    }

    std::vector<Task> tasks;  ///< those of one kind follow one another
    std::vector<Edge> edges;
    std::vector<Cost> costs;

    unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
    TaskId any() { return below(static_cast<unsigned>(tasks.size())); }

private:
    Seconds microseconds_below(unsigned n) {
        if (polled_) return microseconds(below(4));
        return microseconds(below(3) == 0 ? 0.0 : 1e-6 * n * below(1'000'000));
    }

    /// What a task does, as its GPU sees it.
    struct Seen {
        Task task;
        Cost cost;
        std::vector<int> memories, links;         ///< distances of GPUs
        std::vector<std::pair<int, Edge>> edges;  ///< distance of the predecessor; its kind
    };

    void add(unsigned kind) {
        Seen seen;
        seen.task.work = GemmShape{1, 1, 1};
        const unsigned stream = below(2 + gpus);
        seen.task.stream = static_cast<int>(stream);
        seen.task.priority = static_cast<int>(below(2));
        Cost& cost = seen.cost;
        cost.launch.time = microseconds_below(5);
        cost.launch.ahead = below(2) == 0;
        if (below(4) == 0) cost.launch.queued = microseconds_below(5);
        cost.setup = microseconds_below(3);
        Completion& completion = cost.end.emplace<Completion>();
        completion.latency = microseconds_below(3);
        if (below(6) == 0) completion.apart = microseconds_below(3);
        cost.handoffs = {microseconds_below(3), microseconds_below(5), microseconds_below(2)};
        cost.body = microseconds_below(200);
        for (unsigned d = below(3); d > 0; --d) seen.memories.push_back(static_cast<int>(below(gpus)));
        if (below(2) == 0) seen.links.push_back(1 + static_cast<int>(below(gpus - 1)));
        amount_ = 1e6 + below(100'000'000);
        weight_ = below(40) == 0 ? 0.5 + 0.01 * below(50) : 1.0;
        weighs_ = weighs_ || (weight_ != 1 && !seen.memories.empty());
        holds_ = below(4) == 0 ? 1.0 + below(200) : 0;
        claims_ = below(4) == 0;
        for (unsigned e = kind == 0 ? 0 : below(3); e > 0; --e) {
            Edge edge{below(kind), 0};
            if (below(4) == 0) edge.from = 0.001 * (1 + below(1000));
            seen.edges.emplace_back(static_cast<int>(below(gpus)), edge);
        }
        if (polled_) poll(seen);
        const int first = static_cast<int>(below(gpus));  // orders of GPUs don't matter
        for (int i = 0; i < gpus; ++i) add(seen, (first + i) % gpus);
        place_.push_back(first);
    }

    void poll(Seen& seen) {
        holds_ = 0;
        seen.memories.clear();
        seen.links.clear();
        seen.cost.launch.ahead = false;
        if (below(2) == 0) return;
        seen.task.work = CopyWork{.src = 1, .bytes = Bytes(1)};
        if (below(3) > 0)
            seen.cost.end =
                Polling{microseconds(2), microseconds(3), static_cast<int>(below(3)), below(2) == 0};
    }

    void add(const Seen& seen, int gpu) {
        const auto at = [&](int distance) { return (gpu + distance) % gpus; };
        const TaskId id = tasks.size();
        Task task = seen.task;
        task.gpu = gpu;
        if (task.stream >= transfer_stream(0))
            task.stream = transfer_stream(at(task.stream - transfer_stream(0)));
        if (auto* copy = std::get_if<CopyWork>(&task.work)) {
            copy->src = at(copy->src);
            copy->dst = gpu;
        }
        Cost cost = seen.cost;
        const ResourceTable& resources = machine_.resources;
        for (const int distance : seen.memories)
            cost.demands.push_back({resources.hbm(at(distance)), 100 * amount_, weight_});
        for (const int distance : seen.links)
            cost.demands.push_back(
                {resources.link(machine_.topology.route(at(distance), gpu).links[0]), amount_});
        if (holds_ > 0 && !seen.memories.empty())
            cost.holds.push_back({resources.hbm(at(seen.memories[0])), 1e9 * holds_});
        if (claims_) cost.claim = Claim{resources.dma_engine(gpu, at(1))};
        tasks.push_back(task);
        costs.push_back(std::move(cost));
        for (auto [distance, edge] : seen.edges) {
            const auto before = static_cast<unsigned>(edge.predecessor);
            const int place = (at(distance) - place_[before] + gpus) % gpus;
            edges.push_back({before * gpus + static_cast<unsigned>(place), id, edge.from});
        }
    }

    std::mt19937 random_;
    Machine machine_;
    const bool polled_;
    double amount_ = 0, weight_ = 1, holds_ = 0;
    bool claims_ = false, weighs_ = false;
    std::vector<int> place_;  ///< by kind: the GPU of its first task
};

/// Changes of one task that its likes don't share.
const std::map<std::string, std::function<bool(PlantedCase&)>>& spoilers() {
    static const std::map<std::string, std::function<bool(PlantedCase&)>> all{
        {"a byte more",
         [](PlantedCase& one) {
             Cost& cost = one.costs[one.any()];
             if (cost.demands.empty()) return false;
             cost.demands.front().amount += 1;
             return true;
         }},
        {"a femtosecond more",
         [](PlantedCase& one) {
             one.costs[one.any()].setup += Seconds(1e-15);
             return true;
         }},
        {"another priority",
         [](PlantedCase& one) {
             one.tasks[one.any()].priority += 1;
             return true;
         }},
        {"an edge less",
         [](PlantedCase& one) {
             if (one.edges.empty()) return false;
             one.edges.erase(one.edges.begin() + one.below(static_cast<unsigned>(one.edges.size())));
             return true;
         }},
        {"an edge more",
         [](PlantedCase& one) {
             if (one.tasks.size() <= gpus) return false;
             one.edges.push_back(
                 {one.below(gpus), gpus + one.below(static_cast<unsigned>(one.tasks.size()) - gpus), 0.5});
             return true;
         }},
        {"another memory", [](PlantedCase& one) {
             Cost& cost = one.costs[one.any()];
             const ResourceTable& resources = one.machine().resources;
             if (cost.demands.empty() || resources[cost.demands.front().resource].kind != ResourceKind::hbm)
                 return false;
             const int gpu = resources[cost.demands.front().resource].gpu;
             cost.demands.front().resource = resources.hbm((gpu + 1) % gpus);
             return true;
         }}};
    return all;
}

/// The times of the quotient's tasks, for all tasks.
std::vector<TaskTimes> times_by(const PlantedCase& planted, const Quotient& quotient) {
    std::vector<Cost> few(quotient.graph.size());
    for (TaskId id = planted.tasks.size(); id-- > 0;)
        if (planted.tasks[id].gpu == 0) few[quotient.class_of[id]] = planted.costs[id];
    return quotient.expanded(times_of(quotient.graph, few, quotient.resources));
}

void compare_planted(unsigned cases) {
    std::size_t shared = 0;
    unsigned refused = 0;
    std::map<std::string, unsigned> spoiled;
    for (unsigned seed = 0; seed < cases; ++seed) {
        INFO("seed " << seed);
        PlantedCase planted(seed);
        const std::optional<Quotient> quotient = planted.quotient();
        if (!quotient) {
            REQUIRE(planted.weighs());
            ++refused;
            continue;
        }
        CHECK(quotient->graph.size() * gpus == planted.tasks.size());
        for (TaskId id = 0; id < planted.tasks.size(); ++id)
            shared += planted.tasks[id].gpu == 0 && planted.costs[id].demands.size() > 1;
        CHECK(same_times(times_of(planted.graph(), planted.costs, planted.machine().resources),
                         times_by(planted, *quotient)));
        for (const auto& [name, spoil] : spoilers()) {
            PlantedCase near(seed);
            if (!spoil(near)) continue;
            INFO(name);
            CHECK_FALSE(near.quotient());
            ++spoiled[name];
        }
    }
    CHECK(shared > cases);
    CHECK(refused < cases / 2);
    for (const auto& [name, spoil] : spoilers()) CHECK(spoiled[name] > cases / 10);
}

}  // namespace

TEST_CASE("where ends are polled for, there is a quotient only if no order within an instant has an effect") {
    constexpr unsigned cases = 4000;
    unsigned found = 0, would_differ = 0;
    for (unsigned seed = 0; seed < cases; ++seed) {
        INFO("seed " << seed);
        const PlantedCase planted(seed, true);
        const std::optional<Quotient> quotient = planted.quotient();
        const auto whole = times_of(planted.graph(), planted.costs, planted.machine().resources);
        if (quotient) {
            ++found;
            CHECK(same_times(whole, times_by(planted, *quotient)));
        } else {
            would_differ += planted.gpus_differ(whole);
        }
    }
    CHECK(found > cases / 4);
    CHECK(would_differ > 0);
}

TEST_CASE("a planted symmetry is found, and is gone when one task is changed") {
    compare_planted(1000);
}

TEST_CASE("ten times as many planted symmetries", "[.all]") {
    compare_planted(10'000);
}

}  // namespace overlap::test::planted_quotients_test
