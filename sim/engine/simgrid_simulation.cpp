#include "sim/engine/simgrid_simulation.hpp"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <xbt/log.h>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/engine/completions.hpp"
#include "sim/engine/dispatcher.hpp"
#include "sim/engine/polls.hpp"
#include "sim/engine/simgrid_holds.hpp"

namespace overlap {
namespace {

namespace s4u = simgrid::s4u;

// Amounts are scaled to parts of a resource's capacity, so that every host has a speed near one: the solver's
// precision is absolute. A body is a parallel task over one host per resource it uses, and one for its own
// top rate; latencies are timers. Then what SimGrid has no word for:
// - a stretch of a body between two stops is a parallel task of its own;
// - a weight: the solver compares a task's largest single demand on a host, and adds up all of them; a demand
//   given in w equal parts counts for fairness as a w-th of itself, and for capacity as itself;
// - held units: hosts have a speed (pstate) for every capacity that holds can leave;
// - a limit for each user apart: a host for each stream that meets it.
class Simulation {
public:
    Simulation(const TaskGraph& graph, std::span<const Cost> costs, const ResourceTable& resources,
               std::uint64_t seed, const std::string& solver, SimgridReached& reached)
        : reached_(reached),
          graph_(graph),
          costs_(costs),
          resources_(resources),
          solver_(solver),
          dispatcher_(
              graph, costs, resources, seed, [this](TaskId task) { return progress(task); },
              [this] { return now(); }),
          polls_(graph, costs),
          completions_(graph, costs),
          times_(graph.size()),
          done_(graph.size()),
          goal_(graph.size()),
          begun_(graph.size()) {}

    std::vector<TaskTimes> run() {
        configure();
        s4u::Exec::on_completion_cb([this](const s4u::Activity& activity) { completed(activity); });
        carry_out(dispatcher_.begin());
        s4u::Engine::get_instance()->run();
        return std::move(times_);
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
        for (const Cost& cost : costs_) {
            for (const Hold& hold : cost.holds) holds_[hold.resource].may_take(hold);
            for (const Demand& demand : cost.demands) {
                double& least = least_weight_.try_emplace(demand.resource, demand.weight).first->second;
                least = std::min(least, demand.weight);
            }
        }
        // SimGrid takes no more hosts once it runs.
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
        reached_.clock = date;
        while (!agenda_[date].empty()) {
            const auto batch = std::exchange(agenda_[date], {});
            for (const auto& [task, action] : batch) action();
            if (agenda_[date].empty()) carry_out(dispatcher_.settle());
        }
        agenda_.erase(date);
        at_work_ = false;
    }

    void carry_out(const Dispatcher::Next& next) {
        for (const TaskId task : next.resume) resume_body(task);
        for (const TaskId task : next.set_up) set_up(task);
        for (const TaskId task : next.launch) launch(task);
    }

    void launch(TaskId task) {
        times_[task].start = now();
        const Seconds launch =
            polls_.begin(task, now(), stream_free_[stream_of(task)], dispatcher_.launch_time(task));
        after(launch, task, [this, task] { carry_out(dispatcher_.launched(task)); });
    }

    void set_up(TaskId task) {
        // A launch that ran ahead is hidden behind the task before; the span begins where that one left the
        // stream.
        if (costs_[task].launch_ahead)
            times_[task].start = std::max(times_[task].start, stream_free_[stream_of(task)]);
        const Seconds setup = dispatcher_.setup(task);
        if (setup == Seconds()) return start_body(task);
        after(setup, task, [this, task] { start_body(task); });
    }

    void start_body(TaskId task) {
        times_[task].body = now();
        change_holds(costs_[task], true);
        begun_[task] = true;
        resume_body(task);
    }

    static bool takes_time(const Cost& cost) {
        return cost.body > Seconds() || std::any_of(cost.demands.begin(), cost.demands.end(),
                                                    [](const Demand& demand) { return demand.amount > 0; });
    }

    void resume_body(TaskId task) {
        if (!begun_[task]) return;
        reached_.latest = task;
        take_off(task);
        const Cost& cost = costs_[task];
        goal_[task] = dispatcher_.next_stop(task);
        const double share = goal_[task] - done_[task];  // two stops may fall together
        if (!takes_time(cost) || share <= 0)
            return after(Seconds(), task, [this, task] { stretch_done(task); });
        std::vector<s4u::Host*> hosts;
        std::vector<double> amounts;
        const auto use = [&](s4u::Host* host, double amount, double weight) {
            amount *= share;
            // In parts of at most amount / weight.
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
        task_of_.emplace(exec.get(), task);
        running_[task] = exec;
        started_.push_back(exec);
        exec->vetoable_start();
    }

    // It is to go on otherwise.
    void take_off(TaskId task) {
        const auto running = running_.find(task);
        if (running == running_.end()) return;
        done_[task] = progress(task);
        const s4u::ExecPtr exec = running->second;
        running_.erase(running);
        if (exec->get_state() == s4u::Activity::State::STARTED) exec->cancel();
    }

    // A task that asks for a resource twice does so with one weight.
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

    void change_holds(const Cost& cost, bool on) {
        for (const Hold& hold : cost.holds) {
            SimgridHolds& holds = holds_.at(hold.resource);
            if (hold.adds_up)
                holds.units += (on ? 1 : -1) * static_cast<int>(std::lround(hold.units));
            else if (on)
                holds.largest.push_back(hold.units);
            else
                holds.largest.erase(std::find(holds.largest.begin(), holds.largest.end(), hold.units));
            const std::size_t pstate = holds.pstate(resources_[hold.resource].capacity);
            for (const auto& [user, host] : hosts_[hold.resource]) host->set_pstate(pstate);
        }
    }

    double progress(TaskId task) const {
        const auto running = running_.find(task);
        if (running == running_.end()) return done_[task];
        return goal_[task] - (goal_[task] - done_[task]) * running->second->get_remaining_ratio();
    }

    void completed(const s4u::Activity& activity) {
        const TaskId task = task_of_.at(&activity);
        after(Seconds(), task, [this, task, &activity] {
            const auto running = running_.find(task);
            if (running != running_.end() && running->second.get() == &activity) stretch_done(task);
        });
    }

    void stretch_done(TaskId task) {
        done_[task] = goal_[task];
        running_.erase(task);
        if (dispatcher_.ends_next(task)) return body_done(task);
        if (dispatcher_.is_numbered(task)) {
            const std::size_t stop = dispatcher_.stop_number(task);
            if (dispatcher_.flags(stop))
                after(costs_[task].flag, task,
                      [this, task, stop] { carry_out(dispatcher_.flagged(task, stop)); });
        }
        carry_out(dispatcher_.reached(task));
    }

    void body_done(TaskId task) {
        change_holds(costs_[task], false);
        times_[task].done = now();
        polls_.end(task);
        if (!costs_[task].polling) {
            const Seconds completion = completions_.delay(task, now());
            const Seconds event = polls_.event(task);
            if (event == Seconds()) {
                leave_stream(task, dispatcher_.body_done(task));
            } else {
                const bool keeps_claim = polls_.event_keeps_claim(task);
                if (!keeps_claim) carry_out(dispatcher_.body_done(task, true));
                after(event, task, [this, task, keeps_claim] {
                    leave_stream(task,
                                 keeps_claim ? dispatcher_.body_done(task) : dispatcher_.stream_left(task));
                });
            }
            return end_after(completion, task);
        }
        const std::span<const Polls::Seen> seen = polls_.seen(task, now());
        if (polls_.keeps_stream(task))
            carry_out(dispatcher_.body_done(task, true));
        else
            leave_stream(task, dispatcher_.body_done(task));
        for (const auto& [other, delay] : seen) end_after(delay, other);
    }

    void leave_stream(TaskId task, const Dispatcher::Next& next) {
        stream_free_[stream_of(task)] = now();
        carry_out(next);
    }

    void end_after(Seconds delay, TaskId task) {
        if (delay == Seconds()) return end(task);
        after(delay, task, [this, task] { end(task); });
    }

    void end(TaskId task) {
        times_[task].end = now();
        times_[task].unit_seconds = dispatcher_.unit_seconds(task);
        ++reached_.ended;
        if (polls_.keeps_stream(task)) leave_stream(task, dispatcher_.stream_left(task));
        const auto go_on = [this, task](Handoff kind) { carry_out(dispatcher_.handed_over(task, kind)); };
        dispatcher_.hand_over(task, go_on, [&](Handoff kind, Seconds delay) {
            after(delay, task, [go_on, kind] { go_on(kind); });
        });
    }

    SimgridReached& reached_;
    const TaskGraph& graph_;
    std::span<const Cost> costs_;
    const ResourceTable& resources_;
    std::string solver_;
    Dispatcher dispatcher_;
    Polls polls_;
    Completions completions_;
    std::vector<TaskTimes> times_;
    std::unique_ptr<s4u::Engine> engine_;
    s4u::NetZone* zone_ = nullptr;
    std::vector<double> done_;  ///< share of each body
    std::vector<double> goal_;  ///< the share at which it stops next
    std::vector<char> begun_;
    std::vector<std::map<std::optional<std::size_t>, s4u::Host*>>
        hosts_;  ///< by resource, and by stream where it limits each
    std::map<ResourceId, SimgridHolds> holds_;
    std::map<ResourceId, double> least_weight_;
    std::map<std::size_t, s4u::Host*> streams_;
    std::map<std::size_t, Seconds> stream_free_;  ///< when the last body on it was over
    std::map<double, std::multimap<TaskId, std::function<void()>>> agenda_;  ///< by date, then task
    bool at_work_ = false;
    double date_ =
        0;  ///< while at work: the date that is due, from which SimGrid's clock may be a rounding away
    std::unordered_map<const s4u::Activity*, TaskId> task_of_;
    std::map<TaskId, s4u::ExecPtr> running_;
    std::vector<s4u::ExecPtr> started_;  // kept: SimGrid still uses an activity after its completion signal
};

}  // namespace

std::vector<TaskTimes> simulate_by_simgrid(const TaskGraph& graph, std::span<const Cost> costs,
                                           const ResourceTable& resources, std::uint64_t seed,
                                           const std::string& solver, SimgridReached& reached) {
    return Simulation(graph, costs, resources, seed, solver, reached).run();
}

}  // namespace overlap
