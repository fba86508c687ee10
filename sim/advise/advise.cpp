#include "sim/advise/advise.hpp"

#include <tbb/parallel_for.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <tuple>
#include <utility>

#include "sim/core/available_memory.hpp"
#include "sim/core/ranges.hpp"
#include "sim/run/budget.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/resolver.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/device_losses.hpp"

namespace overlap {
namespace {

/// Throws UserError if the candidates that are simulated at the same time need more memory than there is.
void require_memory_of(const Scenario& scenario, const std::vector<Candidate>& candidates) {
    const Bytes available = available_memory();
    const unsigned at_once = std::max(1U, std::thread::hardware_concurrency());
    for (const Candidate& one : candidates) {
        Bytes needed;
        try {
            needed = at_once * budget_of(with_candidate(scenario, one), available).memory;
        } catch (const UserError&) {  // it is not going to run
        }
        require_memory_for("simulations of candidates, " + std::to_string(at_once) + " at a time,", needed,
                           available);
    }
}

/// The fastest candidate of which `fits` is true; null if there is none.
template <class Fits>
const RankedCandidate* fastest(const std::vector<RankedCandidate>& all, Fits fits) {
    const auto found = std::ranges::find_if(all, fits, &RankedCandidate::candidate);
    return found == all.end() ? nullptr : &*found;
}

const RankedCandidate* find(const std::vector<RankedCandidate>& all, const Candidate& candidate) {
    return fastest(all, [&](const Candidate& one) { return one == candidate; });
}

bool is_serial(const Candidate& one) {
    return one.schedule == "serial";
}

/// Finds the next choice and the loss that decides between it and the best candidate.
void compare_with_next_choice(const Scenario& scenario, const RunOptions& options, SimulatedAdvice& advice) {
    const RankedCandidate& best = advice.ranked.front();
    const RankedCandidate* other =
        fastest(advice.ranked, [&](const Candidate& one) { return !one.same_choice(best.candidate); });
    if (other == nullptr) return;
    const Losses theirs = run(with_candidate(scenario, other->candidate), options).losses;
    const Losses& mine = advice.best.front().losses;
    const auto [decided_by, difference] = largest_difference(theirs, mine);
    advice.next_choice = {*other, other->makespan / best.makespan - 1, decided_by, difference};
}

/// Finds the choice that is best in a steady state, if it is another one; of the first few choices of a cool GPU.
void compare_with_steady_state(const Scenario& scenario, SimulatedAdvice& advice) {
    constexpr std::size_t most_choices = 4;
    const Machine& machine = *scenario.machine;
    const auto& energy = machine.topology.device().energy;
    if (scenario.repeat == Repeat::steady || !energy || energy->power_exponent == 0 ||
        machine.topology.nodes() > 1)
        return;
    const std::vector<Candidate> choices =
        mapped(one_of_each_choice(advice.ranked, most_choices), &RankedCandidate::candidate);
    Scenario repeated = scenario;
    repeated.repeat = Repeat::steady;
    const std::vector<RankedCandidate> settled = ranked(repeated, choices);
    const RankedCandidate* of_cool = find(settled, choices.front());
    constexpr double least_gain = 0.0005;  // less is printed as 0.0 %
    if (of_cool == nullptr) return;
    const double gain = of_cool->makespan / settled.front().makespan - 1;
    if (settled.front().candidate == of_cool->candidate || gain < least_gain) return;
    advice.in_steady_state = {settled.front(), gain};
}

Remarks remarks_on(const Scenario& scenario, const std::vector<RankedCandidate>& all,
                   const ConfigFolder& folder) {
    const RankedCandidate& best = all.front();
    const Scenario fastest = with_candidate(scenario, best.candidate);
    RunConfig config = read_run_config(fastest.config(), "advice");
    config.topology = scenario.given.topology;
    const auto is_same = [&](const Json& what_if) {
        RunConfig without = config;
        without.what_if = what_if;
        const Scenario other = resolve(without, folder);
        return std::ranges::all_of(all, [&](const RankedCandidate& one) {
            return makespan_of(with_candidate(other, one.candidate)) == one.makespan;
        });
    };
    return Remarker(folder).on(config, fastest, best.makespan, {"in any of these makespans", is_same});
}

/// The fastest `serial` of both lists; only the first list holds allowed candidates.
AdviceBaseline baseline_among(const std::vector<RankedCandidate>& candidates,
                              const std::vector<RankedCandidate>& beside) {
    const RankedCandidate *mine = fastest(candidates, is_serial), *other = fastest(beside, is_serial);
    if (mine == nullptr && other == nullptr) throw UserError("serial does not serve this scenario");
    const bool allowed = other == nullptr || (mine != nullptr && mine->makespan <= other->makespan);
    const auto by_library = [](const Candidate& one) { return is_serial(one) && one.by_library(); };
    const bool with_library =
        fastest(candidates, by_library) != nullptr || fastest(beside, by_library) != nullptr;
    return {allowed ? *mine : *other, allowed, with_library};
}

}  // namespace

std::vector<RankedCandidate> ranked(const Scenario& scenario, const std::vector<Candidate>& candidates,
                                    const std::function<void()>& simulated, std::string* refusal) {
    std::vector<std::optional<Seconds>> times(candidates.size());
    std::vector<std::string> refusals(candidates.size());
    // Every core takes the next candidate of the list. Halves of the list, which parallel_for gives out, would
    // leave a core idle: the largest graphs are next to each other.
    std::atomic<std::size_t> next = 0;
    tbb::parallel_for(std::size_t{0}, candidates.size(), [&](std::size_t) {
        const std::size_t i = next++;
        try {
            times[i] = makespan_of(with_candidate(scenario, candidates[i]));
        } catch (const UserError& error) {
            refusals[i] = error.what();  // for example more chunks than rows
        }
        if (simulated) simulated();
    });
    std::vector<RankedCandidate> result;
    for (std::size_t i = 0; i < candidates.size(); ++i)
        if (times[i]) result.push_back({candidates[i], *times[i]});
    for (const std::string& reason : refusals)
        if (refusal != nullptr && refusal->empty()) *refusal = reason;
    std::ranges::stable_sort(result, {}, &RankedCandidate::makespan);
    return result;
}

std::vector<PresetTime> presets_of(const Scenario& scenario, const ConfigFolder& folder,
                                   const AllowedCandidates& allowed) {
    std::vector<PresetTime> times;
    if (scenario.workload.pair() == nullptr) return times;
    Resolver resolver(folder);
    RunConfig config = read_run_config(scenario.config(), "advise");
    config.params = Json::object();
    for (const std::string& name : folder.names("schedules")) {
        config.schedule = name;
        try {
            const Scenario one = resolver.resolve_for_numbers(config);
            const std::string& agent = agent_names[static_cast<std::size_t>(one.params.transfers.agent)];
            if (!allowed.has(one.schedule->own_kernel, agent)) continue;
            times.push_back({name, one.schedule->own_kernel, makespan_of(one)});
        } catch (const UserError&) {  // it serves other workloads
        }
    }
    std::ranges::sort(times, {}, &PresetTime::makespan);
    return times;
}

std::vector<RankedCandidate> one_of_each_choice(std::span<const RankedCandidate> ranked, std::size_t most) {
    std::vector<RankedCandidate> found;
    for (const RankedCandidate& one : ranked)
        if (found.size() < most && std::ranges::none_of(found, [&](const RankedCandidate& other) {
                return other.candidate.same_choice(one.candidate);
            }))
            found.push_back(one);
    return found;
}

std::pair<std::string, Seconds> largest_difference(const Losses& theirs, const Losses& mine) {
    const std::array<std::pair<const char*, Seconds>, 6> differences{
        {{"contention", theirs.contention - mine.contention},
         {"launch", theirs.launch - mine.launch},
         {"packing", theirs.packing - mine.packing},
         {"decomposition", theirs.decomposition - mine.decomposition},
         {"pattern", theirs.pattern - mine.pattern},
         {"fill_drain", theirs.fill_drain - mine.fill_drain}}};
    return *std::ranges::max_element(differences, {}, &std::pair<const char*, Seconds>::second);
}

std::size_t most_simulated(const Scenario& scenario, std::size_t top) {
    const Topology& topology = scenario.machine->topology;
    const std::size_t candidates = candidates_for(scenario.workload, topology).size() +
                                   library_candidates(scenario.workload, topology).size();
    return candidates + std::min(top, candidates);
}

SimulatedAdvice advise(const Scenario& scenario, const ConfigFolder& folder, std::size_t top,
                       const AllowedCandidates& allowed, const std::function<void()>& simulated) {
    const std::function<void()> counted = simulated ? simulated : [] {};
    const Topology& topology = scenario.machine->topology;
    std::vector<Candidate> all = candidates_for(scenario.workload, topology);
    const auto add = [&](const Candidate& one) {
        if (!contains(all, one)) all.push_back(one);
    };
    for (const Candidate& one : library_candidates(scenario.workload, topology)) add(one);
    require_memory_of(scenario, all);

    SimulatedAdvice advice;
    advice.topology = topology.name();
    advice.workload = to_json(scenario.workload);
    advice.vendors_library = short_name(topology.device().collective_library->name);
    std::vector<Candidate> candidates;
    std::ranges::copy_if(all, std::back_inserter(candidates),
                         [&](const Candidate& one) { return allowed.has(one); });
    std::string refusal;
    advice.ranked = ranked(scenario, candidates, counted, &refusal);
    if (advice.ranked.empty()) throw UserError("no schedule serves this scenario: " + refusal);
    const bool nothing_cut = std::ranges::all_of(advice.ranked, is_serial, &RankedCandidate::candidate);
    if (nothing_cut && !refusal.empty()) throw UserError(refusal);  // for example fewer rows than GPUs

    // Removes candidates that were not asked for and only serve comparisons.
    std::erase_if(all, [&](const Candidate& one) { return allowed.has(one) || one.schedule != "serial"; });
    const std::vector<RankedCandidate> beside = ranked(scenario, all, counted);
    advice.baseline = baseline_among(advice.ranked, beside);
    Baselines baselines;
    const RunOptions options{.record = false, .baselines = &baselines};
    advice.choices = one_of_each_choice(advice.ranked, top);
    for (const RankedCandidate& one : advice.choices) {
        advice.best.push_back(run(with_candidate(scenario, one.candidate), options));
        compare_with(advice.baseline.serial.candidate.name(advice.vendors_library),
                     advice.baseline.serial.makespan, advice.best.back());
        counted();
    }
    advice.scenario = advice.best.front().scenario;
    const auto shard_level = [](const Candidate& one) { return find_schedule(one.schedule).shard_level; };
    if (const RankedCandidate* one = fastest(advice.ranked, shard_level)) advice.shard_level = *one;
    if (const RankedCandidate* one = fastest(advice.ranked, std::not_fn(&Candidate::own_kernel)))
        advice.by_library_kernels = *one;
    compare_with_next_choice(scenario, options, advice);
    compare_with_steady_state(scenario, advice);
    advice.presets = presets_of(scenario, folder, allowed);
    if (scenario.host) advice.host = scenario.host->name;
    advice.remarks = remarks_on(scenario, advice.ranked, folder);
    return advice;
}

}  // namespace overlap
