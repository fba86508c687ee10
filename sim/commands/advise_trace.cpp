#include "sim/commands/advise_trace.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/commands/command_line.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/other_runs.hpp"
#include "sim/commands/trace_advice.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/candidates.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/device_library.hpp"

namespace overlap {
namespace {

/// The list of an iteration as recorded, but with the pairs in it priced, so that schedules can be compared.
class PairedList {
public:
    PairedList(RecordedList list, const RecordedRun& recording) {
        const Json json{{"name", "recorded"},
                        {"ranks", recording.ranks},
                        {"order", "program"},
                        {"operators", list.operators}};
        workload_ = read_workload({json, "recorded list"});
        auto& operators = std::get<std::vector<Operator>>(workload_.content);
        for (std::size_t i = 0; i + 2 < operators.size(); ++i)
            while (stands_between(operators, i)) move_before(operators, i);
        for (std::size_t i = 0; i + 1 < operators.size(); ++i)
            if (take(operators, i, static_cast<int>(recording.ranks))) ++i;
    }

    const Workload& workload() const { return workload_; }
    const std::vector<TracePair>& pairs() const { return pairs_; }
    const std::vector<std::string>& refused() const { return refused_; }

private:
    static bool is_gemm(const Operator& op) { return std::holds_alternative<GemmShape>(op.work); }
    static bool is_collective(const Operator& op) { return std::holds_alternative<CollectiveWork>(op.work); }

    /// Whether the operator behind `i` is a small kernel between a GEMM and a collective, such as the memset of a
    /// GEMM's workspace or the sum of its parts.
    static bool stands_between(const std::vector<Operator>& operators, std::size_t i) {
        constexpr double small = 0.05;  // of the GEMM
        if (i + 2 >= operators.size()) return false;
        const Operator &first = operators[i], &between = operators[i + 1], &second = operators[i + 2];
        const bool gemm_first = is_gemm(first) && is_collective(second);
        if (!gemm_first && !(is_collective(first) && is_gemm(second))) return false;
        const Operator& gemm = gemm_first ? first : second;
        return std::holds_alternative<StreamingWork>(between.work) && between.stream == gemm.stream &&
               between.recorded.time < small * gemm.recorded.time;
    }
    /// Moves the operator behind `i` before it, where its time counts as well.
    static void move_before(std::vector<Operator>& operators, std::size_t i) {
        Operator &first = operators[i], &between = operators[i + 1];
        if (contains(between.needs, i)) {
            between.needs = first.needs;
            for (std::size_t later = i + 2; later < operators.size(); ++later)
                if (contains(operators[later].needs, i + 1) && !contains(operators[later].needs, i))
                    operators[later].needs.push_back(i);
        }
        if (!contains(first.needs, i + 1) && first.stream == between.stream) first.needs.push_back(i + 1);
        std::swap(first, between);
        const auto renumber = [&](std::vector<std::size_t>& needs) {
            for (std::size_t& need : needs) need = need == i ? i + 1 : need == i + 1 ? i : need;
        };
        for (std::size_t later = i; later < operators.size(); ++later) {
            renumber(operators[later].needs);
            renumber(operators[later].recorded.host_needs);
        }
    }

    /// A kernel and a collective behind it on another stream are a pair if the second needs the first; what else it
    /// needs is before it on its own stream.
    bool take(std::vector<Operator>& operators, std::size_t i, int ranks) {
        const Operator &first = operators[i], &second = operators[i + 1];
        if (!contains(second.needs, i)) return false;
        if (!(is_gemm(first) && is_collective(second)) && !(is_collective(first) && is_gemm(second)))
            return false;
        std::array two{operators[i], operators[i + 1]};
        double recorded = 0;
        for (Operator& op : two) {
            recorded += to_microseconds(op.recorded.time);
            op.recorded = {.host = op.recorded.host, .host_needs = op.recorded.host_needs};
            op.stream.clear();
        }
        two[1].needs = {i};
        std::vector<Operator> list(operators.begin(), operators.begin() + static_cast<std::ptrdiff_t>(i));
        append(list, two);
        std::string why_not;
        const std::optional<Pair> pair = pair_at(list, i, ranks, &why_not);
        if (!pair) {
            if (!why_not.empty()) refused_.push_back(two[0].name + " > " + two[1].name + ": " + why_not);
            return false;
        }
        std::ranges::move(two, operators.begin() + static_cast<std::ptrdiff_t>(i));
        PairChoice choice{i, *pair, nullptr, {}, group_at(operators, i)};
        add(choice, operators[choice.gemm()].name, recorded);
        return true;
    }

    void add(const PairChoice& choice, const std::string& gemm, double recorded_us) {
        const auto same = std::ranges::find_if(pairs_, [&](const TracePair& known) {
            return known.first.pair == choice.pair && known.first.group == choice.group;
        });
        TracePair& pair = same == pairs_.end() ? pairs_.emplace_back() : *same;
        if (pair.gemms.empty()) {
            pair.first = choice;
            pair.name = choice.workload().form() + " " + shape_name(choice.pair.gemm) + " " +
                        name_of(choice.pair.gemm.dtype);
        }
        const auto count = static_cast<double>(pair.gemms.size());
        pair.recorded_us = (count * pair.recorded_us + recorded_us) / (count + 1);
        pair.gemms.push_back(gemm);
    }

    Workload workload_;
    std::vector<TracePair> pairs_;
    std::vector<std::string> refused_;
};

/// Runs the list with schedules for its pairs.
class PairRuns {
public:
    PairRuns(const std::string& topology, const PairedList& list, const ConfigFolder& folder)
        : list_(list), resolver_(folder) {
        config_.origin = "the recorded list";
        config_.topology = topology;
        config_.schedule = "concurrent";
        config_.workload = to_json(list.workload());
        config_.seeds = 1;
        machine_ = resolver_.machine(config_);
        if (!machine().device().collective_library->collectives.empty())
            config_.params["algorithm"] = "library";
        whole_us_ = to_microseconds(makespan_of(resolver_.resolve_for_numbers(config_)));
    }

    double whole_us() const { return whole_us_; }
    /// The run of the list with whole pairs.
    double exposed_us() {
        return to_microseconds(
            run(resolver_.resolve_for_numbers(config_), {.record = false}).phases.exposed_comm);
    }

    /// The best of each choice that serves a pair, and the presets that do, the largest gain first.
    std::vector<Gain> gains(const ConfigFolder& folder) {
        std::vector<Change> changes = candidates();
        append(changes, presets(folder));
        tbb::parallel_for(std::size_t{0}, changes.size(), [&](std::size_t i) {
            Gain& gain = changes[i].gain;
            const auto makespan = makespan_us(changes[i].schedules);
            gain.makespan_us = makespan.value_or(0);
            gain.in_graphs_us = makespan_us(changes[i].schedules, graphs);
        });
        std::erase_if(changes,
                      [](const Change& one) { return one.gain.makespan_us == 0; });  // more chunks than rows
        std::ranges::stable_sort(changes, {}, [this](const Change& one) { return rank(one.gain); });
        std::vector<Gain> gains;
        std::set<std::string> choices;
        for (const Change& one : changes)
            if (choices.insert(one.choice).second) gains.push_back(one.gain);
        return gains;
    }

    /// The list as the hosts of captured graphs would run it.
    std::optional<double> in_graphs_us() { return makespan_us(Json::object(), graphs); }

private:
    /// A schedule for all pairs that it serves.
    struct Change {
        std::string choice;  ///< of changes with one of these the fastest counts
        Gain gain;
        Json schedules = Json::object();  ///< of a run config
    };

    std::vector<Change> candidates() const {
        std::vector<Change> changes;
        std::map<std::string, std::size_t> places;
        for (const TracePair& pair : list_.pairs())
            for (const Candidate& one :
                 candidates_for(pair.first.workload(), machine().groups(pair.first.group).front())) {
                // Whole pairs are what the gains are over.
                if (one.schedule == "concurrent" || (one.schedule == "serial" && one.by_library())) continue;
                const auto [known, is_new] = places.emplace(one.label(), changes.size());
                if (is_new)
                    changes.push_back(
                        {one.schedule + " " + one.agent + one.gemm, {one.label(), one.own_kernel()}});
                for (const std::string& gemm : pair.gemms)
                    changes[known->second].schedules[gemm] = {{"schedule", one.schedule},
                                                              {"params", one.params()}};
            }
        return changes;
    }
    std::vector<Change> presets(const ConfigFolder& folder) const {
        std::vector<Change> changes;
        for (const std::string& name : folder.names("schedules")) {
            const SchedulePtr preset = folder.schedule(name);
            Change change{name, {name, preset->own_kernel}};
            change.gain.preset = true;
            for (const TracePair& pair : list_.pairs())
                if (preset->handles(pair.first.workload()))
                    for (const std::string& gemm : pair.gemms)
                        change.schedules[gemm] = {{"schedule", name}, {"params", Json::object()}};
            if (!change.schedules.empty()) changes.push_back(std::move(change));
        }
        return changes;
    }

    static constexpr const char* graphs = "cuda_graph";

    /// Where the recorded host hides what schedules gain, what they gain in graphs decides.
    std::pair<double, double> rank(const Gain& gain) const {
        const double tells = 1e-3 * whole_us_;
        return {std::round(gain.makespan_us / tells), gain.in_graphs_us.value_or(gain.makespan_us)};
    }

    std::optional<double> makespan_us(const Json& schedules, const std::string& host = "") {
        RunConfig config = config_;
        config.host = host;
        config.schedules = schedules;
        try {
            return to_microseconds(makespan_of(resolver_.resolve_for_numbers(config)));
        } catch (const UserError&) {  // it does not serve the pair, or has more chunks than the pair rows
            return std::nullopt;
        }
    }

    const Topology& machine() const { return machine_->topology; }

    const PairedList& list_;
    Resolver resolver_;
    RunConfig config_;
    Resolver::MachinePtr machine_;
    double whole_us_ = 0;
};

TraceAdvice advise(const TraceFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    const RecordedRun recording = read_recording(flags);
    const ChosenIterations iterations = choose_iterations(flags, recording, std::nullopt);
    const Iteration& iteration = iterations.median();
    const std::string topology = topology_for(flags, recording, recording.ranks, folder);
    TraceAdvice advice{.recorded = recording.summary(),
                       .topology = topology,
                       .iteration_us = to_microseconds(iteration.timeline().end()),
                       .where = time_shares(iteration.spans),
                       .shares = list_of(iteration.spans, recording.ranks, Prices::of_the_machine,
                                         gemm_prices(topology, folder))
                                     .shares,
                       .notes = recording.notes};
    for (const RecordedSpan* span : spans_of_longest_gpu(iteration.spans)) advice.spans.push_back(*span);
    const PairedList list(spread_list(flags, recording, iteration, Prices::recorded, folder, advice.notes),
                          recording);
    advice.pairs = list.pairs();
    if (flags.spreads()) {
        advice.spread =
            SpreadRun{std::to_string(recording.ranks) + " GPUs (--tp " + std::to_string(flags.tp) + " --dp " +
                      std::to_string(flags.dp) + (flags.sequence_parallel ? " --sequence-parallel)" : ")")};
    } else {
        advice.no_pairs = list.refused();
    }
    if (topology.empty()) {
        advice.why_no_gains =
            "no topology of " + std::to_string(recording.ranks) + " x " +
            (recording.device.empty() ? "GPUs without a name" : one_line(recording.device)) +
            " is known: give --topology";
        return advice;
    }
    PairRuns runs(topology, list, folder);
    // GPUs that are hot or slow are so in the changed run, too.
    const double as_recorded = flags.spreads() ? 1 : advice.iteration_us / runs.whole_us();
    if (flags.spreads()) {
        advice.spread->us = runs.whole_us();
        advice.spread->exposed_us = runs.exposed_us();
    }
    // A run with another host leaves out what the recorded one did.
    if (const auto us = runs.in_graphs_us())
        advice.in_graphs = Gain{"captured graphs instead of this host", false, false, *us};
    if (!advice.pairs.empty())
        advice.gains = runs.gains(folder);
    else if (recording.ranks == 1)
        advice.why_no_gains = "one GPU: nothing is communicated (--tp N --dp N spreads the run over several)";
    else
        advice.why_no_gains =
            std::ranges::none_of(advice.spans,
                                 [](const RecordedSpan& span) { return gemm_of(span).has_value(); })
                ? "no GEMM has a shape: record with record_shapes=True, and without CUDA graphs, whose kernels "
                  "have none"
                : "no GEMM and collective that need each other, next to each other, with shapes and sizes";
    const auto scale = [&](Gain& gain) {
        gain.makespan_us *= as_recorded;
        if (gain.in_graphs_us) *gain.in_graphs_us *= as_recorded;
        gain.gain_us = advice.base_us() - gain.makespan_us;
    };
    if (advice.in_graphs) scale(*advice.in_graphs);
    std::ranges::for_each(advice.gains, scale);
    advice.others =
        other_runs({flags, recording, iteration, topology, advice.base_us(), advice.pairs, folder});
    return advice;
}

}  // namespace

std::string advice_on_trace(const TraceFlags& flags, const std::string& format, const std::string& html) {
    if (format == "csv")
        throw UserError("command line: --format is csv, which --trace does not have (allowed: text, json)");
    if (!flags.collective.empty() && !contains(collective_names, flags.collective))
        throw UserError("command line: --collective is " + in_quotes(flags.collective) +
                        suggestion(flags.collective, collective_names));
    require_outputs(std::vector<std::filesystem::path>{html},
                    std::vector<std::filesystem::path>(flags.files.begin(), flags.files.end()));
    const TraceAdvice advice = advise(flags);
    if (!html.empty()) write_page(html, page_of(advice));
    return format == "json" ? json_text(to_json(advice)) + "\n" : to_text(advice);
}

}  // namespace overlap
