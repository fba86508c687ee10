#include "sim/transformer/list_search.hpp"

#include <tbb/parallel_for.h>
#include <algorithm>
#include <limits>

#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

/// Makespan of a list that cannot run.
constexpr Seconds never{std::numeric_limits<double>::infinity()};

}  // namespace

ListRun run_list(const Scenario& scenario) {
    const TaskGraph graph = scenario.graph();
    const Prediction prediction = predict(scenario);
    const std::size_t count = std::get<std::vector<Operator>>(scenario.workload.content).size();
    ListRun result{prediction.makespan, prediction.timeline.exposed_communication(),
                   std::vector<Lasted>(count)};
    std::vector<int> gpus(count, std::numeric_limits<int>::max());  // whose tasks count, by operator
    const auto for_each_task = [&](auto&& visit) {
        for (TaskId id = 0; id < graph.size(); ++id)
            if (graph[id].kind() != TaskKind::host) visit(id, static_cast<std::size_t>(graph[id].op));
    };
    for_each_task([&](TaskId id, std::size_t op) { gpus[op] = std::min(gpus[op], graph[id].gpu); });
    for_each_task([&](TaskId id, std::size_t op) {
        const Span& span = prediction.timeline.spans()[id];
        if (graph[id].gpu == gpus[op]) result.operators[op].add({span.start, span.end});
    });
    return result;
}

ListSearch::ListSearch(Scenario serial, std::string label, std::vector<PairCandidates> pairs)
    : serial_(std::move(serial)), label_(std::move(label)), pairs_(std::move(pairs)), others_(pairs_.size()) {
    const ListWay alone = way(choices(), false), alone_as_data_allow = way(choices(), true);
    find_whole();
    find_uniform();
    best_ = whole_;
    for (const ListWay* start : {&alone, &alone_as_data_allow, static_cast<const ListWay*>(&uniform_)})
        if (start->makespan < best_.makespan) best_ = *start;
    descend();
}

Scenario ListSearch::scenario(const ListWay& way) const {
    return scenario_of(way.choices, way.concurrent);
}

void ListSearch::take_whole() {
    best_ = whole_;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        pairs_[i].choose(best_.choices[i]);
        others_[i].reset();
    }
}

Scenario ListSearch::scenario_of(const Choices& choices, bool concurrent) const {
    Scenario cut = serial_;
    cut.schedule = {SchedulePtr(), &find_schedule(concurrent ? "concurrent" : "serial")};
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        if (pairs_[i].empty()) continue;
        PairCandidates pair = pairs_[i];
        pair.choose(choices[i]);
        if (std::optional<PairChoice> choice = pair.in_list(label_)) cut.pairs.push_back(std::move(*choice));
    }
    return cut;
}

ListSearch::Choices ListSearch::choices() const {
    return mapped(pairs_, &PairCandidates::choice);
}

std::vector<ListWay> ListSearch::ways(const std::vector<Choices>& all, bool concurrent) {
    std::vector<Seconds*> unknown;
    std::vector<const Choices*> of;
    for (const Choices& choices : all) {
        const auto [found, is_new] = known_.try_emplace({concurrent, choices}, never);
        if (!is_new) continue;
        unknown.push_back(&found->second);
        of.push_back(&choices);
    }
    tbb::parallel_for(std::size_t{0}, unknown.size(), [&](std::size_t i) {
        try {
            Scenario one = scenario_of(*of[i], concurrent);
            // Orders that many GPUs draw even out: which way is fastest shows in one of them.
            if (one.machine->topology.gpus() >= many_gpus) one.settings.seeds = 1;
            *unknown[i] = makespan_of(one);
        } catch (const UserError&) {
            // Kernels that poll flags keep the compute units of another pair's copies.
        }
    });
    return mapped(all, [&](const Choices& choices) {
        return ListWay{choices, concurrent, known_.at({concurrent, choices})};
    });
}

void ListSearch::choose_whole(PairCandidates& pair) const {
    const std::optional<std::size_t> own = own_serial_ ? pair.fastest_serial() : std::nullopt;
    if (own)
        pair.choose(*own);
    else
        pair.choose(label_);
}

ListSearch::Choices ListSearch::whole_but(const std::string& label) const {
    std::vector<PairCandidates> pairs = pairs_;
    for (PairCandidates& pair : pairs) {
        if (pair.empty()) continue;
        choose_whole(pair);
        pair.choose(label);
    }
    return mapped(pairs, &PairCandidates::choice);
}

void ListSearch::find_whole() {
    own_serial_ = true;
    const Choices own = whole_but("");
    own_serial_ = false;
    const Choices as_the_list = whole_but("");
    const bool all_have_it = std::ranges::all_of(
        pairs_, [&](const PairCandidates& pair) { return pair.empty() || pair.find(label_); });
    // Not all: a group between nodes, where the library does not go.
    std::vector<Choices> tried{own};
    if (all_have_it) tried.push_back(as_the_list);
    const std::vector<ListWay> both = ways(tried, false);
    own_serial_ = !all_have_it || both.front().makespan < both.back().makespan;
    whole_ = own_serial_ ? both.front() : both.back();
}

Seconds ListSearch::alone(const Choices& choices) const {
    Seconds sum;
    for (std::size_t i = 0; i < pairs_.size(); ++i)
        if (!pairs_[i].empty()) sum += pairs_[i].ranked()[choices[i]].makespan;
    return sum;
}

bool ListSearch::is_behind_whole(const Choices& choices) const {
    constexpr double between_pairs = 0.02;  // of a list: what pairs may gain from those beside them
    return serial_.machine->topology.gpus() >= many_gpus &&
           alone(choices) > alone(whole_.choices) + between_pairs * whole_.makespan;
}

void ListSearch::find_uniform() {
    uniform_ = whole_;
    uniform_label_ = label_;
    std::vector<RankedCandidate> all;
    for (const PairCandidates& pair : pairs_) append(all, pair.ranked());
    std::vector<std::string> labels =
        mapped(one_of_each_choice(all), [](const RankedCandidate& one) { return one.candidate.label(); });
    std::erase_if(labels, [&](const std::string& label) { return is_behind_whole(whole_but(label)); });
    const std::vector<ListWay> tried =
        ways(mapped(labels, [&](const std::string& label) { return whole_but(label); }), false);
    for (std::size_t i = 0; i < tried.size(); ++i) {
        if (tried[i].makespan >= uniform_.makespan) continue;
        uniform_ = tried[i];
        uniform_label_ = labels[i];
    }
    const ListWay as_data_allow = way(whole_but(uniform_label_), true);
    if (as_data_allow.makespan < uniform_.makespan) uniform_ = as_data_allow;
}

void ListSearch::descend() {
    for (std::size_t i = 0; i < pairs_.size(); ++i) pairs_[i].choose(best_.choices[i]);
    for (std::size_t unchanged = 0, i = 0; unchanged < pairs_.size(); i = (i + 1) % pairs_.size())
        unchanged = improve(i) ? 1 : unchanged + 1;
    for (std::size_t i = 0; i < pairs_.size(); ++i) leave_whole_if_hidden(i);
}

void ListSearch::leave_whole_if_hidden(std::size_t index) {
    PairCandidates& pair = pairs_[index];
    if (pair.empty() || pair.chosen().candidate.schedule == "serial") return;
    const std::size_t before = pair.choice();
    for (const std::size_t other : pair.alternatives(label_)) {
        if (pair.candidate(other).schedule != "serial") continue;
        Choices whole = choices();
        whole[index] = other;
        const ListWay one = way(whole, best_.concurrent);
        if (one.makespan > best_.makespan) continue;
        best_ = one;
        pair.choose(other);
        others_[index] = {before, best_.makespan};
        return;
    }
}

bool ListSearch::improve(std::size_t index) {
    PairCandidates& pair = pairs_[index];
    if (pair.empty()) return false;
    const std::size_t before = pair.choice();
    std::vector<Choices> changed;
    for (const std::size_t other : pair.alternatives(label_)) {
        if (other == before) continue;
        changed.push_back(choices());
        changed.back()[index] = other;
    }
    std::vector<Other> tried{{before, best_.makespan}};
    for (const ListWay& one : ways(changed, best_.concurrent)) {
        tried.push_back({one.choices[index], one.makespan});
        if (one.makespan < best_.makespan) best_ = one;
    }
    pair.choose(best_.choices[index]);
    others_[index].reset();
    for (const Other& one : tried)
        if (one.makespan < never && !pair.candidate(one.candidate).same_choice(pair.chosen().candidate) &&
            (!others_[index] || one.makespan < others_[index]->makespan))
            others_[index] = one;
    return pair.choice() != before;
}

}  // namespace overlap
