#include "sim/run/list_plan.hpp"

#include <algorithm>
#include <span>

#include "sim/core/shown.hpp"

namespace overlap {
namespace {

/// The first three, and the number of the others.
std::string first_of(const std::vector<std::string>& reasons) {
    constexpr std::size_t most = 3;
    const std::string text = joined(std::span(reasons).first(std::min(most, reasons.size())), "; ");
    return reasons.size() <= most ? text : text + "; and " + std::to_string(reasons.size() - most) + " more";
}

class Planner {
public:
    Planner(const RunConfig& config, const Workload& workload, const Topology& topology)
        : config_(config),
          operators_(std::get<std::vector<Operator>>(workload.content)),
          topology_(topology),
          taken_(operators_.size()) {}

    /// The pair of a GEMM that "schedules" names.
    void choose(ConfigObject& given, const std::string& name, ConfigObject choice,
                const std::function<SchedulePtr(const std::string&)>& find) {
        const std::size_t gemm = gemm_called(given, name);
        const SchedulePtr schedule = find(choice.text("schedule"));
        const Json params = choice.has("params") ? choice.raw("params") : Json::object();
        choice.finish();
        std::vector<std::string> reasons;
        for (const std::size_t first : {gemm - 1, gemm})
            if (take(first, schedule, params, "/schedules/" + name + "/params", reasons)) return;
        given.fail(name, "is in no pair that '" + schedule->name + "' serves" +
                             (reasons.empty() ? ": no collective beside this GEMM depends on it"
                                              : ": " + first_of(reasons)));
    }

    void choose_everywhere(const SchedulePtr& schedule) {
        std::vector<std::string> reasons;
        for (std::size_t first = 0; first + 1 < operators_.size(); ++first)
            take(first, schedule, config_.params, "/params", reasons);
        if (plan_.pairs.empty())
            throw UserError(config_.origin + ": /schedule: " + in_quotes(schedule->name) +
                            " serves no pair of this list" +
                            (reasons.empty() ? " (it has no GEMM beside a collective that depends on it)"
                                             : ": " + first_of(reasons)) +
                            "; whole lists are served by serial and concurrent");
        if (!reasons.empty()) plan_.whole = "pairs that run whole: " + first_of(reasons);
    }

    ListPlan plan() && {
        std::ranges::sort(plan_.pairs, {}, &PairChoice::first);
        return std::move(plan_);
    }

private:
    std::size_t gemm_called(const ConfigObject& given, const std::string& name) const {
        std::vector<std::string> names;
        for (std::size_t index = 0; index < operators_.size(); ++index) {
            if (!std::holds_alternative<GemmShape>(operators_[index].work)) continue;
            if (operators_[index].name == name) return index;
            names.push_back(operators_[index].name);
        }
        given.fail(name, "is no GEMM of the list" + suggestion(name, names));
    }

    /// Runs the pair at `first` by `schedule`, if there is one that it serves; else adds to `reasons` why not.
    bool take(std::size_t first, const SchedulePtr& schedule, const Json& given, const std::string& pointer,
              std::vector<std::string>& reasons) {
        std::string why_not;
        const std::optional<Pair> pair = pair_at(operators_, first, topology_.gpus(), &why_not);
        if (pair && (taken_[first] || taken_[first + 1])) {
            if (taken_[first] && taken_[first + 1]) return false;  // by the same choice
            why_not = operators_[taken_[first] ? first : first + 1].name + " is in another pair";
        } else if (pair) {
            PairChoice choice{first, *pair, schedule, {}, group_at(operators_, first)};
            if (schedule->handles(choice.workload())) {
                const Json params = with_defaults(*schedule, given);
                ConfigObject object(params, config_.origin, pointer);
                choice.params =
                    schedule->read(object, choice.workload(), topology_.groups(choice.group).front());
                if (choice.params.transfers.commands == DmaCommands::best)
                    object.fail("dma_commands", "is 'auto', which only a schedule of the whole list can be");
                plan_.pairs.push_back(std::move(choice));
                taken_[first] = taken_[first + 1] = true;
                return true;
            }
            why_not = schedule->name + " does not serve " + choice.workload().form();
        }
        if (!why_not.empty())
            reasons.push_back(operators_[first].name + " > " + operators_[first + 1].name + " (" + why_not +
                              ")");
        return false;
    }

    const RunConfig& config_;
    const std::vector<Operator>& operators_;
    const Topology& topology_;
    std::vector<bool> taken_;  ///< by operator
    ListPlan plan_;
};

/// Throws UserError if the topology has no such groups as a collective of the list names.
void require_groups(const RunConfig& config, const Workload& workload, const Topology& topology) {
    for (const Operator& op : std::get<std::vector<Operator>>(workload.content)) {
        const auto* collective = std::get_if<CollectiveWork>(&op.work);
        if (collective == nullptr || collective->group.is_all()) continue;
        try {
            topology.groups(collective->group);
        } catch (const UserError& error) {
            throw UserError(config.origin + ": /group of operator " + in_quotes(op.name) + " of workload " +
                            in_quotes(workload.name) + ": " + error.what());
        }
    }
}

}  // namespace

ListPlan plan_list(const RunConfig& config, const SchedulePtr& schedule, const Workload& workload,
                   const Topology& topology, const std::function<SchedulePtr(const std::string&)>& find) {
    ConfigObject given(config.schedules, config.origin, "/schedules");
    if (workload.pair() != nullptr) {
        if (!config.schedules.empty())
            given.fail("", "is for lists of operators, but the workload is a pair");
        return {};
    }
    require_groups(config, workload, topology);
    const bool whole_lists = schedule->handles(workload);
    if (!config.schedules.empty() && whole_lists && !schedule->takes("algorithm"))
        given.fail("", "does not go with " + in_quotes(schedule->name) +
                           ", which cuts lists by itself (allowed: serial, concurrent, schedules of pairs)");
    Planner planner(config, workload, topology);
    for (const std::string& name : given.keys()) planner.choose(given, name, given.object(name), find);
    if (!whole_lists) planner.choose_everywhere(schedule);
    return std::move(planner).plan();
}

}  // namespace overlap
