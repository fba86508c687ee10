#include "sim/transformer/study.hpp"

#include <map>
#include <tuple>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/steady.hpp"
#include "sim/transformer/list_search.hpp"

namespace overlap {
namespace {

class StepSimulator {
public:
    /// `lists`: of the step, of which only names, counts and operators are given.
    StepSimulator(std::vector<ListStudy> lists, const StudyOptions& options, Resolver& resolver)
        : lists_(std::move(lists)), options_(options), resolver_(resolver) {}

    std::vector<ListStudy> simulated() {
        return mapped(lists_, [this](const ListStudy& list) { return simulated(list); });
    }

private:
    ListStudy simulated(ListStudy list) {
        Scenario serial = fastest_serial(list);
        if (options_.clock == StepClock::step) serial.machine = machine_of_step(serial.machine);
        const std::shared_ptr<const Machine> cool = serial.machine;
        if (options_.clock == StepClock::settled) serial = at_its_clock(serial, cool);
        ListSearch search(serial, list.serial, candidates_of(serial, list));
        list.own_serial = search.own_serial();
        list.uniform_label = search.uniform_label();
        const ListRun whole = run_of(search.scenario(search.whole()), cool, list.steady_whole);
        const bool cuts = search.best().choices != search.whole().choices || search.best().concurrent;
        ListRun cut = whole;
        list.steady_cut = list.steady_whole;
        if (cuts) cut = run_of(search.scenario(search.best()), cool, list.steady_cut);
        if (cut.makespan > whole.makespan) {  // the power limit takes more than overlap gains
            search.take_whole();
            cut = whole;
            list.steady_cut = list.steady_whole;
        }
        list.concurrent = search.best().concurrent;
        list.run = search.scenario(search.best());
        list.run->machine = cool;
        list.run->steady.reset();
        list.whole = whole.makespan;
        list.cut = cut.makespan;
        list.exposed_whole = whole.exposed;
        list.exposed_cut = cut.exposed;
        list.uniform = cut.makespan * (search.uniform().makespan / search.best().makespan);
        describe(search, list);
        add_times(whole, cut, list);
        return list;
    }

    /// Its clock falls with the duration of the GEMMs of all lists.
    std::shared_ptr<const Machine> machine_of_step(const std::shared_ptr<const Machine>& of_list) const {
        auto machine = std::make_shared<Machine>(*of_list);
        machine->sustained = Seconds();
        for (const ListStudy& list : lists_)
            machine->sustained +=
                static_cast<double>(list.count) * multiplying_time(list.workload, machine->calibration);
        return machine;
    }

    /// `scenario` on a machine with the clock that settles where it runs again and again.
    static Scenario at_its_clock(Scenario scenario, const std::shared_ptr<const Machine>& cool) {
        scenario.machine = cool;
        scenario.repeat = Repeat::steady;
        scenario.steady.reset();
        return settled(scenario, scenario.graph());
    }

    /// A way that was found, at its own clock.
    ListRun run_of(Scenario way, const std::shared_ptr<const Machine>& cool,
                   std::optional<SteadyState>& steady) const {
        if (options_.clock == StepClock::settled) {
            way = at_its_clock(std::move(way), cool);
            steady = way.steady;
        }
        return run_list(way);
    }

    RunConfig config_of(const Workload& workload) const {
        RunConfig config = options_.run;
        config.origin = "model";
        config.schedule = "serial";
        config.workload = to_json(workload);
        config.repeat = Repeat::once;
        return config;
    }

    /// Every operator whole, by copies or by the vendor's library.
    Scenario fastest_serial(ListStudy& list) {
        std::optional<std::pair<Scenario, Seconds>> best;
        const Scenario copies = resolver_.resolve(config_of(list.workload));
        std::vector<Candidate> candidates;
        for (const auto& [agent, transfer] :
             {std::pair("dma", "pull"), std::pair("dma", "push"), std::pair("cu", "push")})
            candidates.push_back({"serial", 0, agent, transfer, ""});
        for (const Candidate& one : library_candidates(list.workload, copies.machine->topology))
            if (one.schedule == "serial") candidates.push_back(one);
        // A list without collectives of a node has none of the kernels that do them.
        const auto is_allowed = [&](const Candidate& one) { return options_.allowed.has(one); };
        if (std::ranges::any_of(candidates, is_allowed)) std::erase_if(candidates, std::not_fn(is_allowed));
        std::string refusal;
        for (const Candidate& candidate : candidates) {
            try {
                const Scenario scenario = with_candidate(copies, candidate);
                const Seconds makespan = makespan_of(scenario);
                if (!best || makespan < best->second) {
                    best = {scenario, makespan};
                    list.serial = candidate.label();
                }
            } catch (const UserError& error) {
                if (refusal.empty()) refusal = error.what();
            }
        }
        counted();
        if (!best) throw UserError(refusal);
        return best->first;
    }

    /// The pairs with their candidates; adds a row for each operator and each pair.
    std::vector<PairCandidates> candidates_of(const Scenario& serial, ListStudy& list) {
        const auto& operators = std::get<std::vector<Operator>>(list.workload.content);
        const int gpus = serial.machine->topology.gpus();
        std::vector<PairCandidates> pairs;
        for (std::size_t first = 0; first < operators.size(); ++first) {
            const std::optional<Pair> pair = gpus > 1 ? pair_at(operators, first, gpus) : std::nullopt;
            OperatorStudy& row = list.operators.emplace_back();
            row.name = operators[first].name;
            if (!pair) continue;
            row.name += " > " + operators[first + 1].name;
            row.is_pair = true;
            pairs.push_back(candidates_of(*pair, group_at(operators, first), serial).at(first));
            counted();
            ++first;
        }
        return pairs;
    }

    /// Candidates of a pair, which several lists of a step may have.
    const PairCandidates& candidates_of(const Pair& pair, const RankGroup& group, const Scenario& serial) {
        const Workload workload{"pair", "", pair};
        const auto [found, is_new] =
            known_.try_emplace({to_json(workload).dump(), group.ranks ? *group.ranks : std::vector<int>(),
                                group.size, group.stride},
                               std::nullopt);
        if (is_new) {
            Scenario alone = resolver_.resolve(config_of(workload));
            alone.machine = machine_of(group, serial.machine);
            alone.repeat = serial.repeat;
            alone.steady = serial.steady;
            found->second.emplace(0, group, std::move(alone), options_.allowed, options_.all_candidates);
        }
        return *found->second;
    }

    /// The GPUs of the first group, with the clock of the whole list.
    std::shared_ptr<const Machine> machine_of(const RankGroup& group,
                                              const std::shared_ptr<const Machine>& all) {
        if (group.is_all()) return all;
        auto part = std::make_shared<Machine>(*all);
        part->topology = all->topology.groups(group).front();
        part->resources = ResourceTable(part->topology);
        return parts_.emplace_back(std::move(part));  // baselines_ knows machines by address
    }

    void describe(const ListSearch& search, ListStudy& list) {
        std::size_t index = 0;
        for (OperatorStudy& row : list.operators) {
            if (!row.is_pair) continue;
            const PairCandidates& candidates = search.pairs()[index];
            const std::optional<ListSearch::Other>& other = search.others()[index++];
            if (candidates.empty()) continue;
            row.best = candidates.chosen().candidate;
            row.gain = candidates.gain();
            if (other) {
                row.next = candidates.candidate(other->candidate);
                row.margin = other->makespan / search.best().makespan - 1;
            }
            if (const auto own = candidates.fastest_serial(); own && list.own_serial)
                row.own_serial = candidates.candidate(*own);
            if (const auto decided = candidates.decided_by(baselines_))
                std::tie(row.decided_by, row.difference) = *decided;
        }
    }

    void counted() const {
        if (options_.done) options_.done();
    }

    static void add_times(const ListRun& whole, const ListRun& cut, ListStudy& list) {
        std::size_t index = 0;
        for (OperatorStudy& row : list.operators) {
            Lasted of_whole = whole.operators[index], of_cut = cut.operators[index];
            ++index;
            if (row.is_pair) {
                of_whole.add(whole.operators[index]);
                of_cut.add(cut.operators[index++]);
            }
            row.whole = of_whole.time();
            row.cut = of_cut.time();
        }
    }

    const std::vector<ListStudy> lists_;
    const StudyOptions& options_;
    Resolver& resolver_;
    Baselines baselines_;
    std::vector<std::shared_ptr<const Machine>> parts_;
    std::map<std::tuple<std::string, std::vector<int>, int, int>, std::optional<PairCandidates>> known_;
};

ListStudy list_of(const std::string& name, std::int64_t count, std::vector<Operator> operators) {
    ListStudy list;
    list.name = name;
    list.count = count;
    list.workload = {name, "", std::move(operators)};
    return list;
}

}  // namespace

std::vector<ListStudy> lists_of(const Model& model, const StepShape& step) {
    std::vector<ListStudy> lists;
    for (const LayerKind& kind : layer_kinds(model)) {
        lists.push_back(list_of(kind.name, kind.count, layer_operators(model, step, kind)));
        if (in_two_batches(step, kind.shape)) lists.back().workload.list_order = ListOrder::data;
    }
    if (model.predicting > 0)
        lists.push_back(list_of("predictor", model.predicting, predictor_operators(model, step)));
    lists.push_back(list_of("head", 1, head_operators(model, step)));
    return lists;
}

std::vector<ListStudy> simulated(std::vector<ListStudy> lists, const StudyOptions& options,
                                 Resolver& resolver) {
    return StepSimulator(std::move(lists), options, resolver).simulated();
}

std::size_t parts_of(const Model& model, const StepShape& step) {
    std::size_t parts = 0;
    std::size_t passes = step.pipeline.is_trivial() ? 1 : 3;
    if (step.pipeline.order == PipelineOrder::dualpipe) ++passes;
    if (step.two_batches) passes *= 2;
    if (step.best_sms) passes *= measured_deepep_sms.size();
    for (const ListStudy& list : lists_of(model, step)) {
        ++parts;
        const auto& operators = std::get<std::vector<Operator>>(list.workload.content);
        for (std::size_t first = 0; step.spread.gpus > 1 && first < operators.size(); ++first)
            if (pair_at(operators, first, step.spread.gpus)) {
                ++parts;
                ++first;
            }
    }
    return passes * parts;
}

StepStudy study(const Workload& list, const StudyOptions& options, Resolver& resolver) {
    if (list.pair() != nullptr)
        throw UserError("workload " + in_quotes(list.name) +
                        " is a pair; a step needs a list of operators (for a pair: sim advise --workload)");
    StepStudy result;
    result.shape.tokens = 0;
    ListStudy whole = list_of(list.name, 1, std::get<std::vector<Operator>>(list.content));
    whole.workload.list_order = list.list_order;
    result.lists = simulated({std::move(whole)}, options, resolver);
    static_cast<StudyTimes&>(result) = result.lists.front();
    result.shape.spread.gpus = result.lists.front().run->machine->topology.gpus();
    return result;
}

}  // namespace overlap
