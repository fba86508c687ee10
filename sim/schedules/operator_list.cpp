#include "sim/schedules/operator_list.hpp"

#include <algorithm>
#include <deque>

#include "sim/core/ranges.hpp"
#include "sim/schedules/operator_streams.hpp"
#include "sim/schedules/splice.hpp"

namespace overlap {
namespace {

/// For each operator the collective that is the only reader of its result and reads nothing else. No
/// all_gather (see sends_a_result), and none of groups.
std::vector<std::optional<std::size_t>> collectives_of_results(const std::vector<Operator>& operators) {
    constexpr std::size_t none = ~std::size_t{0}, several = none - 1;
    std::vector<std::size_t> taker(operators.size(), none);
    for (std::size_t index = 0; index < operators.size(); ++index)
        for (const std::size_t need : operators[index].needs)
            taker[need] = taker[need] == none || taker[need] == index ? index : several;
    std::vector<std::optional<std::size_t>> result(operators.size());
    for (std::size_t producer = 0; producer < operators.size(); ++producer) {
        if (std::holds_alternative<CollectiveWork>(operators[producer].work)) continue;
        if (operators[producer].is_of_some_ranks()) continue;
        if (taker[producer] >= several || operators[taker[producer]].needs.size() != 1) continue;
        const auto* collective = std::get_if<CollectiveWork>(&operators[taker[producer]].work);
        if (collective != nullptr && collective->kind != CollectiveKind::all_gather &&
            collective->group.is_all() && collective->exchange.tokens == 0 &&
            operators[producer].stream.empty() && operators[taker[producer]].stream.empty())
            result[producer] = taker[producer];
    }
    return result;
}

const PairChoice* choice_at(std::span<const PairChoice> choices, std::size_t first) {
    const auto found = std::ranges::lower_bound(choices, first, {}, &PairChoice::first);
    return found == choices.end() || found->first != first ? nullptr : &*found;
}

/// The groups of the collectives of a list as topologies.
class Groups {
public:
    explicit Groups(const Topology& whole) : whole_(whole) {}

    const std::vector<Topology>& of(const RankGroup& group) {
        for (const auto& [known, topologies] : made_)
            if (known == group) return topologies;
        return made_.emplace_back(group, whole_.groups(group)).second;
    }

private:
    const Topology& whole_;
    std::deque<std::pair<RankGroup, std::vector<Topology>>> made_;
};

/// From the tasks of all ranks, by rank, those of the ranks of `group`, by rank in the group.
RankTasks of_group(const RankTasks& all, const Topology& group) {
    RankTasks tasks;
    for (int rank = 0; rank < group.gpus(); ++rank)
        tasks.push_back(all[static_cast<std::size_t>(group.whole_rank(rank))]);
    return tasks;
}
void put_back(RankTasks tasks, const Topology& group, RankTasks& all) {
    for (int rank = 0; rank < group.gpus(); ++rank)
        all[static_cast<std::size_t>(group.whole_rank(rank))] =
            std::move(tasks[static_cast<std::size_t>(rank)]);
}

/// By the algorithm of the parameters; libraries were measured in one node, so a group between nodes goes by copies.
/// Throws UserError if the algorithm, or the DMA commands, do not support the collective.
decltype(CollectiveAlgorithm::build) built_by(const CollectiveWork& work, const ScheduleParams& params,
                                              const Topology& group) {
    if (work.exchange.tokens > 0) return exchange_by_deepep;
    const bool unmeasured = params.algorithm == "library" && !work.group.is_all() && group.nodes() > 1;
    const std::string name = unmeasured ? "hierarchical" : params.algorithm;
    const CollectiveAlgorithm& algorithm = collective_algorithm(name);
    if (!algorithm.handles(work.kind))
        throw UserError("collective algorithm '" + name + "' has no " + name_of(work.kind) +
                        " (use algorithm=direct)");
    const DmaCommands commands = params.transfers.commands;
    if (!can_command(commands, work.kind))
        throw UserError(
            "dma_commands '" + dma_commands_names[static_cast<std::size_t>(commands)] + "' can't do an " +
            name_of(work.kind) +
            " (broadcast: all_gather; swap: all_to_all; copy, one_stream, back_to_back, auto: any)");
    return algorithm.build;
}

/// The graph of a list, operator by operator.
class ListGraph {
public:
    ListGraph(std::vector<Operator> operators, const Topology& topology, bool in_sequence,
              ListOrder list_order, const std::optional<Rotations>& alike, TaskGraph& graph)
        : graph_(graph),
          operators_(std::move(operators)),
          topology_(topology),
          groups_(topology),
          built_(topology.gpus(), alike),
          in_sequence_(in_sequence),
          list_order_(in_sequence ? ListOrder::program : list_order),
          ends_(operators_.size()),
          last_(static_cast<std::size_t>(topology.gpus())),
          calls_(built_.count()),
          streams_(operators_) {
        graph_.name_streams(streams_.names());
    }

    const BuiltRanks& built() const { return built_; }
    const Operator& at(std::size_t index) const { return operators_[index]; }
    bool is_done(std::size_t index) const { return !ends_[index].empty(); }

    /// Adds what the hosts did from their call before until the one that enqueued the operator.
    void add_host_calls(std::size_t index) {
        const Recorded& recorded = operators_[index].recorded;
        if (!recorded.calls_host()) return;
        for (const int rank : built_.ranks()) {
            if (!operators_[index].is_on(rank)) continue;
            std::vector<TaskId> after;
            for (const std::size_t need : recorded.host_needs) append(after, ends_[need][built_.place(rank)]);
            calls_[built_.place(rank)] = {
                built_.add(graph_, {HostWork{recorded.host}, rank, host_stream}, after)};
        }
    }

    /// What an operator waits for on each rank.
    RankTasks ready(std::size_t index) const {
        RankTasks tasks = calls_;
        const auto wait_for = [&](const RankTasks& more) {
            for (std::size_t r = 0; r < tasks.size(); ++r)
                tasks[r].insert(tasks[r].end(), more[r].begin(), more[r].end());
        };
        const std::vector<std::size_t>& needs = operators_[index].needs;
        for (const std::size_t need : needs) wait_for(ends_[need]);
        streams_.wait(operators_[index], tasks);
        if (!in_sequence_ || index == 0) return tasks;
        if (!operators_[index - 1].is_of_some_ranks()) {
            if (!contains(needs, index - 1)) wait_for(ends_[index - 1]);
            return tasks;
        }
        for (std::size_t r = 0; r < tasks.size(); ++r) {
            const std::optional<std::size_t> last = std::max(last_[r], last_of_all_);
            if (!last || contains(needs, *last)) continue;
            tasks[r].insert(tasks[r].end(), ends_[*last][r].begin(), ends_[*last][r].end());
        }
        return tasks;
    }

    Task task_of(std::size_t index, int rank) const {
        const Operator& op = operators_[index];
        const MemoryBoundWork recorded{
            .read = {}, .written = {}, .time = op.recorded.time, .in_this_run = true, .gap = op.recorded.gap};
        Task task{op.recorded.is_taken() ? recorded : compute_work(op), rank, streams_.number(op)};
        task.priority = static_cast<int>(op.high_priority ? Priority::high : Priority::normal);
        return task;
    }

    void set_ends(std::size_t index, RankTasks ends) {
        streams_.add(operators_[index], ends);
        if (!operators_[index].is_of_some_ranks())
            last_of_all_ = index;
        else
            for (std::size_t r = 0; r < ends.size(); ++r)
                if (!ends[r].empty()) last_[r] = index;
        ends_[index] = std::move(ends);
    }

    /// Messages; a rank is done with them when it has sent and received its own.
    void add_sends(std::size_t index, const SendWork& send, Transfers& transfers) {
        const RankTasks ready = this->ready(index);
        RankTasks ends(ready.size());
        for (std::size_t i = 0; i < send.from.size(); ++i) {
            const auto from = static_cast<std::size_t>(send.from[i]),
                       to = static_cast<std::size_t>(send.to[i]);
            std::vector<TaskId> after = ready[from];
            if (in_sequence_) after.insert(after.end(), ready[to].begin(), ready[to].end());
            std::ranges::sort(after);
            after.erase(std::unique(after.begin(), after.end()), after.end());
            const TaskId sent = transfers.copy_alone(static_cast<int>(from), static_cast<int>(to),
                                                     {send.bytes, send.bytes}, after);
            ends[from].push_back(sent);
            ends[to].push_back(sent);
        }
        set_ends(index, std::move(ends));
    }

    void add_pair(const PairChoice& choice) {
        const TaskId from = graph_.size();
        const RankTasks before = ready(choice.first);
        RankTasks first(before.size()), second(before.size());
        for (const Topology& group : groups_.of(choice.group)) {
            SplicedEnds ends =
                splice(graph_, choice.schedule->build(choice.workload(), group, choice.params, graph_.left()),
                       choice.pair.order, of_group(before, group), group, list_order_);
            put_back(std::move(ends.first), group, first);
            put_back(std::move(ends.second), group, second);
        }
        for (TaskId id = from; id < graph_.size(); ++id)
            graph_.set_operator(
                id, static_cast<int>(is_of_gemm(graph_[id]) ? choice.gemm() : choice.collective()));
        set_ends(choice.first, std::move(first));
        set_ends(choice.first + 1, std::move(second));
    }

    void add_collective(std::size_t index, const CollectiveWork& work, const ScheduleParams& params) {
        const RankTasks before = ready(index);
        if (work.group.is_all()) {
            Transfers transfers(graph_, topology_, transfers_of(index, params.transfers));
            set_ends(index, built_by(work, params, topology_)(work, before, transfers));
            return;
        }
        RankTasks done(before.size());
        for (const Topology& group : groups_.of(work.group)) {
            const auto build = built_by(work, params, group);
            Transfers transfers(graph_, group,
                                transfers_of(index, transfers_in_group(params.transfers, group)),
                                RanksOf::whole);
            put_back(build(work, of_group(before, group), transfers), group, done);
        }
        set_ends(index, std::move(done));
    }

    /// With the priority of an operator.
    TransferOptions transfers_of(std::size_t index, TransferOptions options) const {
        if (operators_[index].high_priority) options.priority = Priority::high;
        return options;
    }

private:
    static bool is_of_gemm(const Task& task) {
        return task.kind() == TaskKind::gemm || task.kind() == TaskKind::local_copy;
    }

    TaskGraph& graph_;
    std::vector<Operator> operators_;
    const Topology& topology_;
    Groups groups_;
    BuiltRanks built_;
    bool in_sequence_;
    ListOrder list_order_;
    std::vector<RankTasks> ends_;                   ///< by operator
    std::vector<std::optional<std::size_t>> last_;  ///< by rank: its last operator among those of some ranks
    std::optional<std::size_t> last_of_all_;        ///< the last operator among the others
    RankTasks calls_;                               ///< by rank: the host's last call that the list records
    OperatorStreams streams_;
};

}  // namespace

Work compute_work(const Operator& op) {
    if (const auto* shape = std::get_if<GemmShape>(&op.work)) return *shape;
    if (const auto* streaming = std::get_if<StreamingWork>(&op.work))
        return MemoryBoundWork{streaming->read,  streaming->written, streaming->flops,
                               streaming->dtype, streaming->time,    streaming->attention};
    const auto& reduction = std::get<ReductionWork>(op.work);
    return ReduceWork{reduction.bytes, reduction.parts};
}

bool sends_a_result(const Workload& workload) {
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    const auto takers = collectives_of_results(operators);
    return std::ranges::any_of(takers, [](const auto& taker) { return taker.has_value(); });
}

std::vector<CollectiveKind> collectives_of(const Workload& workload) {
    std::vector<CollectiveKind> kinds;
    if (const Pair* pair = workload.pair()) return {pair->collective};
    for (const Operator& op : std::get<std::vector<Operator>>(workload.content))
        if (const auto* collective = std::get_if<CollectiveWork>(&op.work)) kinds.push_back(collective->kind);
    return kinds;
}

bool can_command(DmaCommands commands, CollectiveKind kind) {
    if (commands == DmaCommands::broadcast) return kind == CollectiveKind::all_gather;
    if (commands == DmaCommands::swap) return kind == CollectiveKind::all_to_all;
    return true;
}

void add_operators(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                   bool in_sequence, TaskGraph& graph, const Fuse& fuse,
                   std::span<const PairChoice> choices) {
    const std::vector<Operator> operators = workload.operators(topology.gpus());
    ListGraph list(operators, topology, in_sequence, workload.list_order, params.transfers.alike, graph);
    const BuiltRanks& built = list.built();
    const auto takers = collectives_of_results(operators);

    for (std::size_t index = 0; index < operators.size(); ++index) {
        if (list.is_done(index)) continue;  // fused
        list.add_host_calls(index);
        if (const PairChoice* choice = choice_at(choices, index)) {
            list.add_host_calls(index + 1);
            list.add_pair(*choice);
            continue;
        }
        const Operator& op = operators[index];
        const RankTasks ready = list.ready(index);
        const TaskId from = graph.size();
        const auto* collective = std::get_if<CollectiveWork>(&op.work);
        if (collective != nullptr && !op.recorded.is_taken()) {
            list.add_collective(index, *collective, params);
        } else if (const auto* send = std::get_if<SendWork>(&op.work)) {
            Transfers transfers(graph, topology, list.transfers_of(index, params.transfers));
            list.add_sends(index, *send, transfers);
        } else if (const auto taker = fuse ? takers[index] : std::nullopt) {
            FusedEnds fused = fuse(compute_work(op), std::get<CollectiveWork>(operators[*taker].work), ready);
            list.set_ends(index, std::move(fused.made));
            list.set_ends(*taker, std::move(fused.given));
        } else {
            RankTasks done(built.count());
            for (const int rank : built.ranks()) {
                if (!op.is_on(rank)) continue;
                Task task = list.task_of(index, rank);
                if (task.kind() == TaskKind::gemm)
                    std::tie(task.gemm_cus, task.cu_mask) = std::tie(params.gemm_cus, params.cu_mask);
                done[built.place(rank)] = {built.add(graph, task, ready[built.place(rank)])};
            }
            list.set_ends(index, std::move(done));
        }
        if (workload.pair() != nullptr) continue;
        for (TaskId id = from; id < graph.size(); ++id) graph.set_operator(id, static_cast<int>(index));
    }
}

}  // namespace overlap
