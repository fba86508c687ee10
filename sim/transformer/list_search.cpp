#include "sim/transformer/list_search.hpp"

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
    for (TaskId id = 0; id < graph.size(); ++id) {
        const Span& span = prediction.timeline.spans()[id];
        if (graph[id].gpu == 0 && graph[id].kind() != TaskKind::host)
            result.operators[static_cast<std::size_t>(graph[id].op)].add({span.start, span.end});
    }
    return result;
}

ListSearch::ListSearch(Scenario serial, std::string label, std::vector<PairCandidates> pairs)
    : serial_(std::move(serial)), label_(std::move(label)), pairs_(std::move(pairs)), others_(pairs_.size()) {
    const ListWay alone = way_or_never(pairs_, false), alone_as_data_allow = way_or_never(pairs_, true);
    find_whole();
    find_uniform();
    best_ = whole_;
    for (const ListWay* start : {&alone, &alone_as_data_allow, static_cast<const ListWay*>(&uniform_)})
        if (start->run.makespan < best_.run.makespan) best_ = *start;
    descend();
}

Scenario ListSearch::scenario(const ListWay& way) const {
    std::vector<PairCandidates> pairs = pairs_;
    for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i].choose(way.choices[i]);
    return scenario_of(pairs, way.concurrent);
}

void ListSearch::take_whole() {
    best_ = whole_;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        pairs_[i].choose(best_.choices[i]);
        others_[i].reset();
    }
}

Scenario ListSearch::scenario_of(const std::vector<PairCandidates>& pairs, bool concurrent) const {
    Scenario cut = serial_;
    cut.schedule = {SchedulePtr(), &find_schedule(concurrent ? "concurrent" : "serial")};
    for (const PairCandidates& pair : pairs)
        if (std::optional<PairChoice> choice = pair.empty() ? std::nullopt : pair.in_list(label_))
            cut.pairs.push_back(std::move(*choice));
    return cut;
}

ListWay ListSearch::way(const std::vector<PairCandidates>& pairs, bool concurrent) const {
    ListWay result{{}, concurrent, run_list(scenario_of(pairs, concurrent))};
    for (const PairCandidates& pair : pairs) result.choices.push_back(pair.choice());
    return result;
}

ListWay ListSearch::way_or_never(const std::vector<PairCandidates>& pairs, bool concurrent) const {
    try {
        return way(pairs, concurrent);
    } catch (const UserError&) {  // kernels that poll flags keep the compute units of another pair's copies
        return {{}, concurrent, {never, {}, {}}};
    }
}

void ListSearch::choose_whole(PairCandidates& pair) const {
    const std::optional<std::size_t> own = own_serial_ ? pair.fastest_serial() : std::nullopt;
    if (own)
        pair.choose(*own);
    else
        pair.choose(label_);
}

void ListSearch::find_whole() {
    const auto with = [&](bool own_serial) {
        own_serial_ = own_serial;
        std::vector<PairCandidates> pairs = pairs_;
        for (PairCandidates& pair : pairs)
            if (!pair.empty()) choose_whole(pair);
        return way(pairs, false);
    };
    whole_ = with(true);
    const bool all_have_it = std::ranges::all_of(
        pairs_, [&](const PairCandidates& pair) { return pair.empty() || pair.find(label_); });
    if (!all_have_it) return;  // a group between nodes, where the library does not go
    ListWay as_the_list = with(false);
    own_serial_ = whole_.run.makespan < as_the_list.run.makespan;
    if (!own_serial_) whole_ = std::move(as_the_list);
}

void ListSearch::find_uniform() {
    uniform_ = whole_;
    uniform_label_ = label_;
    const auto with = [&](const std::string& label) {
        std::vector<PairCandidates> pairs = pairs_;
        for (PairCandidates& pair : pairs) {
            if (pair.empty()) continue;
            choose_whole(pair);
            pair.choose(label);
        }
        return pairs;
    };
    std::vector<RankedCandidate> all;
    for (const PairCandidates& pair : pairs_) append(all, pair.ranked());
    for (const RankedCandidate& one : one_of_each_choice(all)) {
        const std::string label = one.candidate.label();
        ListWay way_with = way_or_never(with(label), false);
        if (way_with.run.makespan >= uniform_.run.makespan) continue;
        uniform_ = std::move(way_with);
        uniform_label_ = label;
    }
    ListWay as_data_allow = way_or_never(with(uniform_label_), true);
    if (as_data_allow.run.makespan < uniform_.run.makespan) uniform_ = std::move(as_data_allow);
}

void ListSearch::descend() {
    for (std::size_t i = 0; i < pairs_.size(); ++i) pairs_[i].choose(best_.choices[i]);
    for (std::size_t unchanged = 0, i = 0; unchanged < pairs_.size(); i = (i + 1) % pairs_.size())
        unchanged = improve(i) ? 1 : unchanged + 1;
}

bool ListSearch::improve(std::size_t index) {
    PairCandidates& pair = pairs_[index];
    if (pair.empty()) return false;
    std::vector<Other> tried{{pair.choice(), best_.run.makespan}};
    const std::size_t before = pair.choice();
    for (const std::size_t other : pair.alternatives(label_)) {
        if (other == before) continue;
        pair.choose(other);
        ListWay changed = way_or_never(pairs_, best_.concurrent);
        tried.push_back({other, changed.run.makespan});
        if (changed.run.makespan < best_.run.makespan) best_ = std::move(changed);
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
