#include "sim/schedules/operator_list.hpp"

#include <algorithm>

namespace overlap {
namespace {

std::vector<Operator> operators_of(const Workload& workload, int ranks) {
    const Pair* pair = workload.pair();
    if (pair == nullptr) return std::get<std::vector<Operator>>(workload.content);
    Operator gemm{"gemm", pair->gemm, {}};
    Operator collective{name_of(pair->collective),
                        CollectiveWork{pair->collective, pair->operand(ranks), pair->operand_type()},
                        {}};
    if (pair->order == Order::gemm_first) {
        collective.needs = {0};
        return {gemm, collective};
    }
    if (pair->order == Order::collective_first) gemm.needs = {0};
    return {collective, gemm};
}

}  // namespace

Work compute_work(const Operator& op) {
    if (const auto* shape = std::get_if<GemmShape>(&op.work)) return *shape;
    if (const auto* streaming = std::get_if<StreamingWork>(&op.work))
        return MemoryBoundWork{streaming->read, streaming->written};
    const auto& reduction = std::get<ReductionWork>(op.work);
    return ReduceWork{reduction.bytes, reduction.parts};
}

std::optional<std::size_t> collective_of_result(const std::vector<Operator>& operators,
                                                std::size_t producer) {
    if (std::holds_alternative<CollectiveWork>(operators[producer].work)) return std::nullopt;
    std::vector<std::size_t> takers;
    for (std::size_t index = producer + 1; index < operators.size(); ++index) {
        const std::vector<std::size_t>& needs = operators[index].needs;
        if (std::find(needs.begin(), needs.end(), producer) != needs.end()) takers.push_back(index);
    }
    if (takers.size() != 1 || operators[takers[0]].needs.size() != 1) return std::nullopt;
    const auto* collective = std::get_if<CollectiveWork>(&operators[takers[0]].work);
    if (collective == nullptr || collective->kind == CollectiveKind::all_gather) return std::nullopt;
    return takers[0];
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

TaskGraph build_operators(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                          bool in_sequence, const Fuse& fuse) {
    TaskGraph graph;
    Transfers transfers(graph, topology, params.transfers);
    const auto ranks = static_cast<std::size_t>(topology.gpus());
    const auto algorithm = make_collective_algorithm(params.algorithm);
    const std::vector<Operator> operators = operators_of(workload, topology.gpus());
    std::vector<RankTasks> ends(operators.size());  // by operator

    for (std::size_t index = 0; index < operators.size(); ++index) {
        if (!ends[index].empty()) continue;  // fused
        const Operator& op = operators[index];
        RankTasks ready(ranks);
        const auto wait_for = [&](const RankTasks& tasks) {
            for (std::size_t r = 0; r < ranks; ++r)
                ready[r].insert(ready[r].end(), tasks[r].begin(), tasks[r].end());
        };
        for (const std::size_t need : op.needs) wait_for(ends[need]);
        const bool waited = std::find(op.needs.begin(), op.needs.end(), index - 1) != op.needs.end();
        if (in_sequence && index > 0 && !waited) wait_for(ends[index - 1]);

        if (const auto* collective = std::get_if<CollectiveWork>(&op.work)) {
            if (!algorithm->handles(collective->kind))
                throw UserError("collective algorithm '" + params.algorithm + "' has no " +
                                name_of(collective->kind) + " (use algorithm=direct)");
            if (!can_command(transfers.commands(), collective->kind))
                throw UserError(
                    "dma_commands '" + dma_commands_names[static_cast<std::size_t>(transfers.commands())] +
                    "' can't do an " + name_of(collective->kind) +
                    " (broadcast: all_gather; swap: " + "all_to_all; copy, back_to_back, auto: any)");
            ends[index] = algorithm->build(*collective, ready, transfers);
            continue;
        }
        if (const auto taker = fuse ? collective_of_result(operators, index) : std::nullopt) {
            const auto& collective = std::get<CollectiveWork>(operators[*taker].work);
            FusedEnds fused = fuse(graph, compute_work(op), collective, ready);
            ends[index] = std::move(fused.made);
            ends[*taker] = std::move(fused.given);
            continue;
        }
        RankTasks done(ranks);
        for (std::size_t r = 0; r < ranks; ++r) {
            Task task{compute_work(op), static_cast<int>(r), compute_stream};
            if (task.kind() == TaskKind::gemm) task.gemm_cus = params.gemm_cus;
            done[r] = {graph.add(task, ready[r])};
        }
        ends[index] = std::move(done);
    }
    return graph;
}

}  // namespace overlap
