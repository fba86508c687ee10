#include "sim/engine/simgrid_simulation.hpp"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <xbt/log.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/engine/simgrid_holds.hpp"
#include "sim/engine/task_lifecycle.hpp"

namespace overlap {
namespace {

namespace s4u = simgrid::s4u;

struct SimgridPace {
    s4u::ExecPtr exec;  ///< while the body runs: up to its goal
};

// Amounts are scaled to parts of a resource's capacity, so that every host has a speed near one: the solver's
// precision is absolute. A body is a parallel task over one host per resource it uses, and one for its own
// top rate; latencies are timers. SimGrid lacks the following:
// - a stretch of a body between two stops is a parallel task of its own;
// - a weight: the solver compares a task's largest single demand on a host, and adds up all of them; a demand
//   given in w equal parts counts for fairness as a w-th of itself, and for capacity as itself;
// - held units: hosts have a speed (pstate) for every capacity that holds can leave;
// - a limit of each user by itself: a host for each stream that the limit applies to.
class SimgridSimulation : public TaskLifecycle<SimgridSimulation, SimgridPace> {
public:
    SimgridSimulation(const TaskGraph& graph, CostView costs, const ResourceTable& resources,
                      const std::string& solver, SimgridReached& reached)
        : TaskLifecycle(graph, costs, Dispatcher(graph, costs, resources)),
          reached_(reached),
          resources_(resources),
          solver_(solver) {}

    std::vector<TaskTimes> run(std::uint64_t seed) {
        configure();
        s4u::Exec::on_completion_cb([this](const s4u::Activity& activity) { completed(activity); });
        begin(seed);
        s4u::Engine::get_instance()->run();
        return std::move(times_);
    }

private:
    friend TaskLifecycle;

    void configure() {
        static char name[] = "sim";
        static char* arguments[] = {name, nullptr};
        int count = 1;
        engine_ = std::make_unique<s4u::Engine>(&count, arguments);
        xbt_log_control_set("root.thresh:warning");
        s4u::Engine::set_config("host/model:ptask_L07");
        s4u::Engine::set_config("host/solver:" + solver_);
        s4u::Engine::set_config(
            "bmf/max-iterations:100");  // the solver converges in a few iterations, or not within a thousand
        // Far below the shortest task (0.1 µs) and the smallest share (1e-6 of a capacity).
        s4u::Engine::set_config("surf/precision:1e-13");
        s4u::Engine::set_config("maxmin/precision:1e-13");
        zone_ = s4u::create_empty_zone("machine");
        hosts_.resize(resources_.size());
        for (const Cost& cost : costs_.classes()) {
            for (const Hold& hold : cost.holds) holds_[hold.resource].may_take(hold);
            for (const Demand& demand : cost.demands) {
                double& least = least_weight_.try_emplace(demand.resource, demand.weight).first->second;
                least = std::min(least, demand.weight);
            }
        }
        // SimGrid accepts no more hosts once it runs.
        for (TaskId task = 0; task < graph_.size(); ++task) {
            top_rate_host(stream_of(task));
            for (const Demand& demand : costs_[task].demands) host_of(demand.resource, task);
        }
        zone_->seal();
    }

    s4u::Host* host_of(ResourceId id, TaskId task) {
        const Resource& resource = resources_[id];
        const auto user = resource.limits_each ? std::optional(stream_of(task)) : std::nullopt;
        s4u::Host*& host = hosts_[id][user];
        if (host != nullptr) return host;
        std::string name = resource.name;
        if (user) name += "." + std::to_string(*user);
        const auto holds = holds_.find(id);
        host = zone_->create_host(
            name, holds == holds_.end() ? std::vector<double>{1.0} : holds->second.speeds(resource.capacity));
        return host;
    }

    // Tasks of a stream run one at a time, so one host of speed 1 a stream can carry each task's own top
    // rate.
    s4u::Host* top_rate_host(std::size_t stream) {
        s4u::Host*& host = streams_[stream];
        if (host == nullptr) host = zone_->create_host("stream " + std::to_string(stream), 1.0);
        return host;
    }

    std::size_t stream_of(TaskId task) const { return graph_.stream_number(task); }
    Seconds now() const { return Seconds(at_work_ ? date_ : s4u::Engine::get_clock()); }

    // The bits of the time, which is not negative.
    static Date date_of(Seconds time) { return std::bit_cast<Date>(time.si()); }
    static Seconds time(Date date) { return Seconds(std::bit_cast<double>(date)); }
    static Date later(Date date, Seconds delay) { return date_of(time(date) + delay); }
    Date date(Seconds delay = {}) const { return date_of(now() + delay); }

    // One timer for all events of a date. SimGrid's clock may be a rounding away from the date.
    void at(Date at, TaskId task, EventKind kind, std::size_t detail = 0) {
        const Event event(0, task, kind, detail);
        const double date = time(at).si();
        if (at_work_ && date == date_) return at_once_.push_back(event);
        std::vector<Event>& due = agenda_[date];
        if (due.empty()) simgrid::kernel::timer::Timer::set(date, [this, date] { do_all_due(date); });
        due.push_back(event);
    }

    void do_all_due(double date) {
        at_work_ = true;
        reached_.clock = date_ = date;
        at_once_ = std::move(agenda_.extract(date).mapped());
        instant();
        reached_.ended = ended();
        at_work_ = false;
    }

    void happens(const Event& event) { reached_.latest = event.task(); }

    static bool takes_time(const Cost& cost) {
        return cost.body > Seconds() || std::any_of(cost.demands.begin(), cost.demands.end(),
                                                    [](const Demand& demand) { return demand.amount > 0; });
    }

    bool run_body(TaskId task) {
        const Cost& cost = costs_[task];
        const double share = body(task).goal - body(task).done;  // 0 where two stops coincide
        if (!takes_time(cost) || share <= 0) return false;
        std::vector<s4u::Host*> hosts;
        std::vector<double> amounts;
        const auto use = [&](s4u::Host* host, double amount, double weight) {
            amount *= share;
            // The demand is given in parts of at most amount / weight.
            for (const double part = amount / weight; amount > 0; amount -= part) {
                hosts.push_back(host);
                amounts.push_back(std::min(part, amount));
            }
        };
        use(top_rate_host(stream_of(task)), cost.body.si() * dispatcher_.stretch(task), 1);
        for (const Demand& demand : merged(cost))
            use(host_of(demand.resource, task), demand.amount / resources_[demand.resource].capacity,
                demand.weight / least_weight_.at(demand.resource));
        auto exec = s4u::Exec::init();
        exec->set_name(std::to_string(task));
        exec->set_hosts(hosts);
        exec->set_flops_amounts(amounts);
        stretches_.emplace(exec.get(), Event(0, task, EventKind::body, body(task).version));
        body(task).exec = exec;
        started_.push_back(exec);
        exec->vetoable_start();
        return true;
    }

    void halt_body(TaskId task) {
        const s4u::ExecPtr exec = std::exchange(body(task).exec, nullptr);
        if (exec->get_state() == s4u::Activity::State::STARTED) exec->cancel();
    }

    double progress(TaskId task) const {
        const Body& at = body(task);
        if (!at.running) return at.done;
        return at.goal - (at.goal - at.done) * at.exec->get_remaining_ratio();
    }

    // The demands of a task for one resource have one weight.
    static std::vector<Demand> merged(const Cost& cost) {
        std::vector<Demand> demands(cost.demands.begin(), cost.demands.end());
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

    void hold(const Hold& hold) {
        SimgridHolds& holds = holds_.at(hold.resource);
        if (hold.adds_up)
            holds.units += static_cast<int>(std::lround(hold.units));
        else
            holds.largest.push_back(hold.units);
        update_capacity(hold.resource);
    }

    void give_back(const Hold& hold) {
        SimgridHolds& holds = holds_.at(hold.resource);
        if (hold.adds_up)
            holds.units -= static_cast<int>(std::lround(hold.units));
        else
            holds.largest.erase(std::find(holds.largest.begin(), holds.largest.end(), hold.units));
        update_capacity(hold.resource);
    }

    void update_capacity(ResourceId resource) {
        const std::size_t pstate = holds_.at(resource).pstate(resources_[resource].capacity);
        for (const auto& [user, host] : hosts_[resource]) host->set_pstate(pstate);
    }

    void completed(const s4u::Activity& activity) {
        const Event& event = stretches_.at(&activity);
        at(date(), event.task(), event.kind(), event.detail());
    }

    SimgridReached& reached_;
    const ResourceTable& resources_;
    std::string solver_;
    std::unique_ptr<s4u::Engine> engine_;
    s4u::NetZone* zone_ = nullptr;
    std::vector<std::map<std::optional<std::size_t>, s4u::Host*>>
        hosts_;  ///< by resource, and by stream where it limits each
    std::map<ResourceId, SimgridHolds> holds_;
    std::map<ResourceId, double> least_weight_;
    std::map<std::size_t, s4u::Host*> streams_;
    std::map<double, std::vector<Event>> agenda_;  ///< by date
    bool at_work_ = false;
    double date_ = 0;  ///< while events are processed: their date
    std::unordered_map<const s4u::Activity*, Event>
        stretches_;                      ///< by activity: the event that happens at its end
    std::vector<s4u::ExecPtr> started_;  // kept: SimGrid still uses an activity after its completion signal
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void simulate_by_simgrid(
    const TaskGraph& graph, CostView costs, const ResourceTable& resources, std::uint64_t seed,
    const std::string& solver, SimgridReached& reached, std::vector<TaskTimes>& times) {
    times = SimgridSimulation(graph, costs, resources, solver, reached).run(seed);
}

}  // namespace overlap
