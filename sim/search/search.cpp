#include "sim/search/search.hpp"

#include <tbb/parallel_for.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "models/gemm_model.hpp"
#include "sim/advise/advise.hpp"
#include "sim/core/interruption.hpp"
#include "sim/core/mixed.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/plan/plan_checks.hpp"
#include "sim/run/planned.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "sim/schedules/pieces.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_library.hpp"

namespace overlap {
namespace {

constexpr std::size_t most_kept = 24, children = 64, patience = 25, finalists = 12;
constexpr double least_progress = 0.0005;  // of the makespan, in `patience` generations

/// The schedule that others are compared with.
struct Listed {
    std::string name;
    Scenario scenario;
    Seconds makespan;
};

bool is_executable(const Scenario& scenario) {
    const Plan plan = plan_of(scenario);
    if (!plan.placement) return false;
    for (TaskId id = 0; id < plan.graph.size(); ++id)
        if (plan.graph[id].kind() == TaskKind::gemm && plan.graph[id].stream != compute_stream) return false;
    return true;
}

Listed best_listed(const Scenario& scenario, const ConfigFolder& folder, const SearchOptions& options) {
    std::vector<Candidate> candidates = candidates_for(scenario.workload, scenario.machine->topology);
    append(candidates, library_candidates(scenario.workload, scenario.machine->topology));
    std::erase_if(candidates, [&](const Candidate& one) { return !options.allowed.has(one); });
    std::string refusal;
    std::optional<Listed> best;
    for (const RankedCandidate& one : ranked(scenario, candidates, nullptr, &refusal)) {
        const Scenario by = with_candidate(scenario, one.candidate);
        if (options.executable && !is_executable(by)) continue;
        const std::string library = short_name(scenario.machine->topology.device().collective_library->name);
        best = {one.candidate.name(library), by, one.makespan};
        break;
    }
    if (!options.executable)
        for (const PresetTime& one : presets_of(scenario, folder, options.allowed)) {
            if (best && one.makespan >= best->makespan) break;
            RunConfig config = read_run_config(scenario.config(), "search");
            config.schedule = one.name;
            config.params = Json::object();
            best = {one.name, Resolver(folder).resolve(config), one.makespan};
            break;
        }
    if (!best)
        throw UserError("search: no listed schedule is allowed" + (refusal.empty() ? "" : ": " + refusal));
    return *best;
}

SearchSpace space_of(const Scenario& scenario, const SearchOptions& options) {
    const Pair* pair = scenario.workload.pair();
    const Topology& topology = scenario.machine->topology;
    if (pair == nullptr || !has_genomes(*pair))
        throw UserError(
            "search: no pieces are known for a workload '" + scenario.workload.form() +
            "' (allowed: all_gather > gemm, gemm > reduce_scatter and gemm > all_reduce, sharded along m)");
    const Pieces pieces(*pair, topology.gpus(), 1, CommShape::one_d);  // refuses fewer rows than GPUs
    SearchSpace space{.pair = *pair,
                      .ranks = topology.gpus(),
                      .ranks_per_node = topology.gpus_per_node(),
                      .compute_units = static_cast<int>(topology.device().compute_units)};
    space.tile = estimate_gemm(pair->gemm, scenario.machine->calibration.gemm_for(pair->gemm.dtype)).tile_m;
    const ScheduleEntry& like = find_schedule("ficco");
    space.cus = parameters_of(like, {{"agent", "cu"}}, scenario.workload, topology, "search").transfers.cus;
    // One thread that enqueues for all GPUs would let engines serve one rank after the other.
    space.in_turn = scenario.enqueued_by_one() && topology.gpus() > 2 &&
                    topology.device().dma->pulls == PullServer::sender;
    // Found schedules with copy kernels were up to 58 % slower on two H200 than predicted, by DMA 5 %: whether a
    // GEMM's thread blocks leave room for theirs is not known well enough (traces/h200_2/notes.md, search).
    const bool kernels = contains(options.free, SearchDimension::agent) || !options.allowed.agents.empty();
    for (const Agent agent : {Agent::dma, Agent::cu})
        if ((agent == Agent::dma || kernels) &&
            options.allowed.has(false, agent_names[static_cast<std::size_t>(agent)]))
            space.agents.push_back(agent);
    for (const SearchDimension one : options.free)
        if (!options.executable ||
            (one != SearchDimension::units && one != SearchDimension::second_gemm_stream))
            space.free.push_back(one);
    return space;
}

struct Trial {
    Genome genome;
    Seconds makespan{};
    std::vector<Reason> reasons = {};
};

std::string listed_name(const Genome& genome, const SearchSpace& space) {
    const SearchStep &first = genome.steps.front(), &last = genome.steps.back();
    const SearchStep& remote = first.last > 0 ? first : last.last > 0 ? last : genome.steps[1];
    const bool own_alone = std::ranges::any_of(genome.steps, [&](const SearchStep& one) {
        return one.first == 0 && one.last == 0 && one.to - one.from == space.parts(genome);
    });
    return std::string("pieces as in ") + (own_alone ? "hetero" : "uniform") +
           (remote.shards() > 1 ? "_fused" : "_unfused") + (genome.columns ? "_2d" : "_1d") + " by " +
           agent_names[static_cast<std::size_t>(remote.agent)] + " " +
           direction_names[static_cast<std::size_t>(remote.direction)] +
           (remote.lane < 0 ? "" : " on one stream");
}

class Search {
public:
    Search(const Scenario& scenario, SearchSpace space, const SearchOptions& options,
           const std::function<void()>& simulated)
        : base_(scenario),
          space_(std::move(space)),
          options_(options),
          simulated_(simulated),
          random_(options.seed) {
        base_.schedule = schedule_of_plans();
        base_.params = parameters_of(*base_.schedule, Json::object(), scenario.workload,
                                     scenario.machine->topology, "search");
        base_.pairs.clear();
        const Json config = scenario.config();
        for (const auto& item : config.items())
            if (item.key() != "schedule" && item.key() != "params") config_[item.key()] = item.value();
    }

    /// The best trials, fastest first; none where the pair can't be cut.
    const std::vector<Trial>& best(const Listed& listed) {
        std::vector<Trial> trials;
        for (Genome& genome : start_genomes(space_)) {
            std::string name = listed_name(genome, space_);
            trials.push_back({std::move(genome), {}, {{"start", std::move(name), listed.makespan}}});
        }
        keep(std::move(trials));
        Seconds last = kept_.empty() ? Seconds() : kept_.front().makespan;
        for (std::size_t idle = 0; !kept_.empty() && !space_.free.empty() && idle < patience; ++idle) {
            if (is_over()) {
                effort_.ended = "budget";
                break;
            }
            keep(next_generation());
            if (kept_.front().makespan < (1 - least_progress) * last) {
                last = kept_.front().makespan;
                idle = 0;
            }
        }
        return kept_;
    }

    Scenario scenario(const Genome& genome, bool placed = false) const {
        Scenario one = base_;
        Plan plan = plan_of(genome, space_, placed);
        plan.config = config_;
        one.plan = std::make_shared<const Plan>(std::move(plan));
        return one;
    }
    const SearchEffort& effort() const { return effort_; }

private:
    bool is_over() const {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
        return passed.count() > options_.budget;
    }

    std::vector<Trial> next_generation() {
        std::vector<Trial> trials;
        for (std::size_t i = 0; i < children; ++i) {
            // The faster of two is likelier to have children.
            const std::size_t parent = std::min(random_() % kept_.size(), random_() % kept_.size());
            Trial child{kept_[parent].genome, {}, kept_[parent].reasons};
            std::vector<GenomeChange> changes;
            do {
                if (auto change = mutate(child.genome, space_, random_))
                    changes.push_back(*std::move(change));
            } while (random_() % 2 == 0);
            if (changes.empty()) continue;
            const GenomeChange& first = changes.front();
            child.reasons.push_back({dimension_names[static_cast<std::size_t>(first.dimension)],
                                     joined(mapped(changes, &GenomeChange::text), "; "),
                                     kept_[parent].makespan});
            if (is_allowed(child.genome)) trials.push_back(std::move(child));
        }
        return trials;
    }

    bool is_allowed(const Genome& genome) {
        if (!is_valid(genome, space_)) return false;
        if (kept_.size() < most_kept || least_of(genome) < kept_.back().makespan) return true;
        ++effort_.pruned;
        return false;
    }

    /// A lower bound: its GEMMs alone, one after another; nothing is known of GEMMs beside each other.
    Seconds least_of(const Genome& genome) {
        Seconds sum;
        for (const SearchStep& step : genome.steps) {
            if (step.side) return {};
            const GemmShape shape = gemm_of(genome, step, space_);
            auto [found, is_new] = bodies_.try_emplace({shape.m, shape.n, shape.k, step.units});
            if (is_new)
                found->second =
                    isolated_body(models_.cost(Task{.work = shape, .gemm_cus = step.units}, *base_.machine),
                                  base_.machine->resources);
            sum += found->second;
        }
        return sum;
    }

    /// Simulates trials and keeps the fastest of all.
    void keep(std::vector<Trial> trials) {
        std::erase_if(trials, [&](const Trial& one) {
            return !seen_.insert(hash_of(one.genome)).second ||
                   (options_.staging && staging_of(one.genome, space_) > *options_.staging);
        });
        std::vector<std::optional<Seconds>> times(trials.size());
        tbb::parallel_for(std::size_t{0}, trials.size(), [&](std::size_t i) {
            try {
                times[i] = makespan_of(scenario(trials[i].genome));
            } catch (const UserError&) {  // for example more compute units than there are
            }
            simulated_();
        });
        effort_.simulated += trials.size();
        for (std::size_t i = 0; i < trials.size(); ++i) {
            if (!times[i]) continue;
            trials[i].makespan = *times[i];
            Seconds& gain = trials[i].reasons.back().gain;
            gain = gain - *times[i];
            kept_.push_back(std::move(trials[i]));
        }
        std::ranges::stable_sort(kept_, {}, &Trial::makespan);
        // Of those that take equally long the first: others differ in what changes nothing.
        const auto same = [](const Trial& one, const Trial& other) { return one.makespan == other.makespan; };
        kept_.erase(std::unique(kept_.begin(), kept_.end(), same), kept_.end());
        if (kept_.size() > most_kept) kept_.resize(most_kept);
    }

    static std::uint64_t hash_of(const Genome& genome) {
        std::uint64_t hash = mixed(genome.columns ? 1 : 0);
        const auto add = [&](auto value) { hash = mixed(hash ^ static_cast<std::uint64_t>(value)); };
        for (const SearchStep& step : genome.steps) {
            for (const int value : {step.first, step.last, step.cus, step.lane, step.units}) add(value);
            for (const std::int64_t value : {step.from, step.to}) add(value);
            for (const bool value : {step.urgent, step.side}) add(value);
            add(step.agent);
            add(step.direction);
        }
        return hash;
    }

    Scenario base_;
    Json config_ = Json::object();
    SearchSpace space_;
    const SearchOptions& options_;
    const std::function<void()>& simulated_;
    std::mt19937_64 random_;
    CostModels models_{base_.settings.cost_models};
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, int>, Seconds> bodies_;
    std::set<std::uint64_t> seen_;
    std::vector<Trial> kept_;
    SearchEffort effort_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// One reason for each dimension, with the change that gained most in it.
std::vector<Reason> by_dimension(const std::vector<Reason>& history) {
    std::vector<Reason> sums;
    std::map<std::string, Seconds> most;
    for (const Reason& one : history) {
        auto found = std::ranges::find(sums, one.dimension, &Reason::dimension);
        if (found == sums.end()) {
            sums.push_back(one);
            most[one.dimension] = one.gain;
            continue;
        }
        found->gain += one.gain;
        if (one.gain <= most[one.dimension]) continue;
        most[one.dimension] = one.gain;
        found->change = one.change;
    }
    std::ranges::stable_sort(sums, std::ranges::greater(), &Reason::gain);
    return sums;
}

}  // namespace

double SearchResult::closed() const {
    return listed_makespan > ideal ? (listed_makespan - makespan) / (listed_makespan - ideal) : 0;
}

SearchResult search(const Scenario& scenario, const ConfigFolder& folder, const SearchOptions& options,
                    const std::function<void()>& simulated) {
    const SearchSpace space = space_of(scenario, options);
    const Listed listed = best_listed(scenario, folder, options);
    Search search(scenario, space, options, simulated);
    const std::vector<Trial>& trials = search.best(listed);
    SearchResult result;
    result.listed = listed.name;
    result.listed_makespan = result.makespan = listed.makespan;
    result.effort = search.effort();
    // The fastest by a little may be so by an error of a price: of the first few the one whose gain is surest.
    const Trial* best = nullptr;
    for (std::size_t i = 0; i < std::min(trials.size(), finalists) &&
                            trials[i].makespan < (1 - least_progress) * listed.makespan;
         ++i) {
        const Scenario one = search.scenario(trials[i].genome);
        if (best == nullptr) result.errors = price_errors(listed.scenario, one);
        const GainDraws draws =
            drawn_gain(listed.scenario, one, result.errors, std::max(options.draws / 10, 20), options.seed);
        if (best != nullptr && draws.p10 <= result.draws.p10) continue;
        best = &trials[i];
        result.draws = draws;
    }
    const Scenario fastest = best == nullptr ? listed.scenario : search.scenario(best->genome, true);
    if (best != nullptr) {
        result.found = true;
        result.makespan = best->makespan;
        result.draws = drawn_gain(listed.scenario, fastest, result.errors, options.draws, options.seed);
        result.reasons = by_dimension(best->reasons);
        for (const SearchStep& step : best->genome.steps) {
            const std::string how = how_of(step);
            result.steps.push_back(text_of(best->genome, step, space) + (how.empty() ? "" : ": " + how));
        }
        result.plan = *fastest.plan;
        require_written(result.plan);
        result.staging = staging_of(best->genome, space);
    } else {
        result.plan = plan_of(fastest);
    }
    Baselines baselines;
    const RunOptions no_record{.record = false, .baselines = &baselines};
    const RunResult own = run(fastest, no_record), other = run(listed.scenario, no_record);
    result.scenario = own.scenario;
    result.ideal = std::min(own.ideal, other.ideal);
    return result;
}

}  // namespace overlap
