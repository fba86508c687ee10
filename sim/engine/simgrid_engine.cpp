#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <xbt/log.h>
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "sim/engine/child_process.hpp"
#include "sim/engine/dispatcher.hpp"
#include "sim/engine/engine.hpp"

namespace overlap {
namespace {

namespace s4u = simgrid::s4u;

// Amounts are scaled to parts of a resource's capacity, so that every host has a speed near one: the solver's
// precision is absolute. A body is a parallel task over one host per resource it uses, and one for its own
// top rate; latencies are timers. Hosts of compute units have a speed (pstate) for every number of units
// held.
class Simulation {
public:
    Simulation(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources,
               const std::string& solver)
        : graph_(graph),
          costs_(costs),
          resources_(resources),
          solver_(solver),
          dispatcher_(graph, costs),
          times_(graph.size()) {}

    EngineResult run() {
        const auto begin = std::chrono::steady_clock::now();
        configure();
        s4u::Exec::on_completion_cb([this](const s4u::Activity& activity) { completed(activity); });
        carry_out(dispatcher_.begin());
        s4u::Engine::get_instance()->run();
        return finished(std::move(times_), begin);
    }

private:
    void configure() {
        static char name[] = "sim";
        static char* arguments[] = {name, nullptr};
        int count = 1;
        engine_ = std::make_unique<s4u::Engine>(&count, arguments);
        xbt_log_control_set("root.thresh:warning");
        s4u::Engine::set_config("host/model:ptask_L07");
        s4u::Engine::set_config("host/solver:" + solver_);
        s4u::Engine::set_config(
            "bmf/max-iterations:100");  // it settles in a few, or not in a thousand either
        // Far below the shortest task (0.1 µs) and the smallest share (1e-6 of a capacity).
        s4u::Engine::set_config("surf/precision:1e-13");
        s4u::Engine::set_config("maxmin/precision:1e-13");
        zone_ = s4u::create_empty_zone("machine");
        hosts_.resize(resources_.size());
        held_.resize(resources_.size());
        for (const Cost& cost : costs_)
            for (const Hold& hold : cost.holds) can_be_held_.insert(hold.resource);
        // SimGrid takes no more hosts once it runs.
        for (TaskId task = 0; task < graph_.size(); ++task) {
            top_rate_host(stream_of(task));
            for (const Demand& demand : costs_[task].demands) host_of(demand.resource);
            for (const Hold& hold : costs_[task].holds) host_of(hold.resource);
        }
        zone_->seal();
    }

    s4u::Host* host_of(ResourceId id) {
        if (hosts_[id] != nullptr) return hosts_[id];
        const Resource& resource = resources_[id];
        std::vector<double> speeds{1.0};
        if (can_be_held_.contains(id))
            for (double left = resource.capacity - 1; left >= 1; --left)
                speeds.push_back(left / resource.capacity);
        return hosts_[id] = zone_->create_host(resource.name, speeds);
    }

    // Tasks of a stream run one at a time, so one host of speed 1 a stream can carry each task's own top
    // rate.
    s4u::Host* top_rate_host(std::pair<int, int> stream) {
        s4u::Host*& host = streams_[stream];
        if (host == nullptr)
            host =
                zone_->create_host(std::to_string(stream.first) + "." + std::to_string(stream.second), 1.0);
        return host;
    }

    std::pair<int, int> stream_of(TaskId task) const { return {graph_[task].gpu, graph_[task].stream}; }
    Seconds now() const { return Seconds(at_work_ ? date_ : s4u::Engine::get_clock()); }

    // What falls due at one instant is done in the order of task numbers, whatever order SimGrid reports it
    // in; what that brings about at the same instant is done after it.
    void after(Seconds delay, TaskId task, std::function<void()> action) {
        const double date = now().si() + delay.si();
        auto& actions = agenda_[date];
        if (actions.empty() && !(at_work_ && delay.si() <= 0))
            simgrid::kernel::timer::Timer::set(date, [this, date] { do_all_due(date); });
        actions.emplace(task, std::move(action));
    }

    void do_all_due(double date) {
        at_work_ = true;
        date_ = date;
        while (!agenda_[date].empty()) {
            const auto batch = std::exchange(agenda_[date], {});
            for (const auto& [task, action] : batch) action();
        }
        agenda_.erase(date);
        at_work_ = false;
    }

    void carry_out(const Dispatcher::Next& next) {
        for (const TaskId task : next.set_up) set_up(task);
        for (const TaskId task : next.launch) launch(task);
    }

    void launch(TaskId task) {
        times_[task].start = now();
        after(costs_[task].launch, task, [this, task] { carry_out(dispatcher_.launched(task)); });
    }

    void set_up(TaskId task) {
        // A launch that ran ahead is hidden behind the task before; the span begins where that one left the
        // stream.
        if (costs_[task].launch_ahead)
            times_[task].start = std::max(times_[task].start, stream_free_[stream_of(task)]);
        after(costs_[task].setup, task, [this, task] { start_body(task); });
    }

    void start_body(TaskId task) {
        times_[task].body = now();
        const Cost& cost = costs_[task];
        std::vector<s4u::Host*> hosts;
        std::vector<double> amounts;
        const auto use = [&](s4u::Host* host, double amount) {
            if (amount <= 0) return;
            hosts.push_back(host);
            amounts.push_back(amount);
        };
        use(top_rate_host(stream_of(task)), cost.body.si());
        for (const Demand& demand : merged(cost.demands))
            use(host_of(demand.resource), demand.amount / resources_[demand.resource].capacity);
        if (hosts.empty()) return after(Seconds(), task, [this, task] { body_done(task); });
        change_holds(cost, +1);
        auto exec = s4u::Exec::init();
        exec->set_name(std::to_string(task));
        exec->set_hosts(hosts);
        exec->set_flops_amounts(amounts);
        task_of_.emplace(exec.get(), task);
        started_.push_back(exec);
        exec->vetoable_start();
    }

    // SimGrid wants each host once in a parallel task.
    static std::vector<Demand> merged(std::vector<Demand> demands) {
        std::sort(demands.begin(), demands.end(),
                  [](const Demand& a, const Demand& b) { return a.resource < b.resource; });
        std::vector<Demand> result;
        for (const Demand& demand : demands) {
            if (!result.empty() && result.back().resource == demand.resource)
                result.back().amount += demand.amount;
            else
                result.push_back(demand);
        }
        return result;
    }

    void change_holds(const Cost& cost, double sign) {
        for (const Hold& hold : cost.holds) {
            held_[hold.resource] += sign * hold.units;
            s4u::Host* host = host_of(hold.resource);
            const auto state = static_cast<unsigned long>(std::lround(held_[hold.resource]));
            assert(state < host->get_pstate_count());  // schedules leave at least one unit
            host->set_pstate(std::min(state, host->get_pstate_count() - 1));
        }
    }

    void completed(const s4u::Activity& activity) {
        const TaskId task = task_of_.at(&activity);
        after(Seconds(), task, [this, task] {
            change_holds(costs_[task], -1);
            body_done(task);
        });
    }

    void body_done(TaskId task) {
        stream_free_[stream_of(task)] = now();
        carry_out(dispatcher_.body_done(task));
        after(costs_[task].completion, task, [this, task] {
            times_[task].end = now();
            carry_out(dispatcher_.ended(task));
            after(costs_[task].handoff, task, [this, task] { carry_out(dispatcher_.handed_over(task)); });
        });
    }

    const TaskGraph& graph_;
    std::span<const Cost> costs_;
    const ResourceTable& resources_;
    std::string solver_;
    Dispatcher dispatcher_;
    std::vector<TaskTimes> times_;
    std::unique_ptr<s4u::Engine> engine_;
    s4u::NetZone* zone_ = nullptr;
    std::vector<s4u::Host*> hosts_;
    std::vector<double> held_;
    std::set<ResourceId> can_be_held_;
    std::map<std::pair<int, int>, s4u::Host*> streams_;
    std::map<std::pair<int, int>, Seconds> stream_free_;  ///< when the last body on it was over
    std::map<double, std::multimap<TaskId, std::function<void()>>> agenda_;  ///< by date, then task
    bool at_work_ = false;
    double date_ =
        0;  ///< while at work: the date that is due, from which SimGrid's clock may be a rounding away
    std::unordered_map<const s4u::Activity*, TaskId> task_of_;
    std::vector<s4u::ExecPtr> started_;  // kept: SimGrid still uses an activity after its completion signal
};

// SimGrid has one engine and one clock a process, and a second simulation continues the clock of the first,
// so that its last digits differ. Each simulation therefore runs in a process of its own.
EngineResult in_child(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources,
                      const std::string& solver) {
    EngineResult result;
    result.tasks.resize(graph.size());
    ChildProcess child([&](ChildProcess::Writer& out) {
        const EngineResult inside = Simulation(graph, costs, resources, solver).run();
        out.write(&inside.makespan, sizeof inside.makespan);
        out.write(&inside.wall_ms, sizeof inside.wall_ms);
        out.write(inside.tasks.data(), inside.tasks.size() * sizeof(TaskTimes));
    });
    child.read(&result.makespan, sizeof result.makespan);
    child.read(&result.wall_ms, sizeof result.wall_ms);
    child.read(result.tasks.data(), result.tasks.size() * sizeof(TaskTimes));
    child.finish();
    return result;
}

// The solver "bmf" computes the allocation of the contract, but gives up on some instances ("Unable to find a
// BMF allocation"), typically where two resources of one GPU saturate together. "fairbottleneck" never does,
// but fills resources in rounds of equal increments: where tasks share two saturated resources it leaves some
// of them below their fair share (seen: 2e-4 of a makespan).
class SimgridEngine final : public Engine {
public:
    EngineResult run(const TaskGraph& graph, std::span<const Cost> costs,
                     const ResourceTable& resources) const override {
        try {
            return in_child(graph, costs, resources, "bmf");
        } catch (const ChildProcess::Failure&) {
            EngineResult result = in_child(graph, costs, resources, "fairbottleneck");
            result.approximation = "SimGrid's BMF solver gave up; its fair bottleneck solver was used";
            return result;
        }
    }
};

}  // namespace

std::unique_ptr<Engine> make_simgrid_engine() {
    return std::make_unique<SimgridEngine>();
}

}  // namespace overlap
