#include "sim/run/candidates.hpp"

#include <algorithm>

#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/islands.hpp"

namespace overlap {
namespace {

const std::string& by_kernels = agent_names[static_cast<std::size_t>(Agent::cu)];

std::vector<std::string> directions(const std::string& agent) {
    if (agent == by_kernels) return {"push"};
    return {"pull", "push"};
}

/// The kind and the group of each collective.
using Collectives = std::vector<std::pair<CollectiveKind, RankGroup>>;
Collectives kinds_and_groups(const Workload& workload) {
    if (const Pair* pair = workload.pair()) return {{pair->collective, RankGroup()}};
    Collectives found;
    for (const Operator& op : std::get<std::vector<Operator>>(workload.content))
        if (const auto* collective = std::get_if<CollectiveWork>(&op.work))
            found.emplace_back(collective->kind, collective->group);
    return found;
}

/// Whether some collective joins GPUs of one node only.
bool any_within_node(const Collectives& collectives, const Topology& topology) {
    return topology.nodes() == 1 || std::ranges::any_of(collectives, [&](const auto& one) {
               return !one.second.is_all() && topology.groups(one.second).front().nodes() == 1;
           });
}

/// Whether there are collectives, and all are all-reduces of as many GPUs as the kernel was measured on.
bool all_were_measured(const Collectives& collectives, int gpus, const DeviceLibrary::AllReduce& measured) {
    return !collectives.empty() && std::ranges::all_of(collectives, [&](const auto& one) {
        return one.first == CollectiveKind::all_reduce && measured.times.contains(one.second.members(gpus));
    });
}

}  // namespace

Json Candidate::params() const {
    Json json{{"agent", agent}, {"transfer", transfer}};
    if (chunks > 0) json["chunks"] = chunks;
    if (!gemm.empty()) json["gemm"] = gemm;
    if (!algorithm.empty()) json["algorithm"] = algorithm;
    return json;
}

std::string Candidate::label() const {
    if (!algorithm.empty()) return schedule + "/-/" + algorithm;
    return schedule + "/" + (chunks > 0 ? std::to_string(chunks) : "-") + "/" + agent + "/" + transfer +
           (gemm.empty() ? "" : "/" + gemm);
}

std::string Candidate::name(const std::string& library) const {
    return by_library() && !library.empty() ? schedule + " by " + library : label();
}

bool Candidate::own_kernel() const {
    return find_schedule(schedule).own_kernel;
}

bool Candidate::same_choice(const Candidate& other) const {
    return schedule == other.schedule && agent == other.agent && gemm == other.gemm &&
           algorithm == other.algorithm;
}

bool AllowedCandidates::has(const Candidate& candidate) const {
    if (!algorithms.empty() && candidate.schedule == "serial" && !contains(algorithms, candidate.algorithm))
        return false;
    return has(candidate.own_kernel(), candidate.agent);
}

bool AllowedCandidates::has(bool own_kernel, const std::string& agent) const {
    return (agents.empty() || contains(agents, agent)) && (own_kernels || !own_kernel);
}

std::vector<Candidate> candidates_for(const Workload& workload, const Topology& topology) {
    std::vector<Candidate> result;
    for (const ScheduleEntry& schedule : schedules()) {
        if (!schedule.handles(workload) || !schedule.advised ||
            (schedule.between_nodes && islands(topology) == 1))
            continue;
        const bool cuts = schedule.takes("chunks");
        const bool columns = schedule.point({}).shape == CommShape::two_d;
        for (const std::string& agent : agent_names)
            for (const std::string& transfer : directions(agent)) {
                if (!cuts) {
                    result.push_back({schedule.name, 0, agent, transfer, ""});
                    continue;
                }
                for (const int chunks : chunk_counts) {
                    if (columns && chunks == 1) continue;
                    const Candidate cut{schedule.name, chunks, agent, transfer, ""};
                    result.push_back(cut);
                    if (!schedule.takes("gemm") || chunks == 1) continue;
                    result.push_back(cut);
                    result.back().gemm = "chunk";
                }
            }
    }
    return result;
}

std::vector<Candidate> library_candidates(const Workload& workload, const Topology& topology) {
    std::vector<Candidate> result;
    const DeviceLibrary& library = *topology.device().collective_library;
    const Collectives collectives = kinds_and_groups(workload);
    if (library.collectives.empty() || !any_within_node(collectives, topology)) return result;
    std::vector<CollectiveKernel> kernels{CollectiveKernel::library};
    for (const auto& [kernel, measured] : library.all_reduces)
        if (all_were_measured(collectives, topology.gpus(), measured)) kernels.push_back(kernel);
    for (const ScheduleEntry& schedule : schedules())
        if (schedule.handles(workload) && schedule.advised && schedule.takes("algorithm"))
            for (const CollectiveKernel kernel : kernels)
                result.push_back({schedule.name, 0, by_kernels, "push", "", name_of(kernel)});
    return result;
}

std::string short_name(const std::string& library) {
    std::string name = library.substr(0, library.find_first_of(",("));
    while (!name.empty() && name.back() == ' ') name.pop_back();
    return name;
}

Scenario with_candidate(const Scenario& scenario, const Candidate& candidate) {
    Scenario result = scenario;
    const ScheduleEntry& schedule = find_schedule(candidate.schedule);
    require_handled(schedule, scenario.workload);
    result.schedule = {SchedulePtr(), &schedule};
    result.pairs.clear();
    result.whole_pairs.clear();
    result.params =
        schedule.read({candidate.params(), candidate.label()}, scenario.workload, scenario.machine->topology);
    return result;
}

}  // namespace overlap
