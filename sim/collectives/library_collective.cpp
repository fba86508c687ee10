#include "sim/collectives/collective_algorithm.hpp"

namespace overlap {
namespace {

/// A kernel polls its peers' flags from its start on; the bytes come after.
constexpr double where_ranks_meet = 0.01;

// One kernel a rank does the whole collective. It is launched when its own GPU is ready, and waits in itself for the
// others: no event goes from one GPU to another, and the time in which ranks find each other is in the measured
// latency.
template <CollectiveKernel kernel>
RankTasks by_kernel(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) {
    if (transfers.ranks() == 1) return ready;
    RankTasks done;
    for (std::size_t rank = 0; rank < ready.size(); ++rank) {
        // Communicators of different groups have streams of their own.
        const int own = static_cast<int>(rank);
        const int stream = transfers.are_all() ? own : (own + 1) % transfers.ranks();
        Task task{CollectiveKernelWork{.kind = work.kind,
                                       .operand = work.operand,
                                       .cus = transfers.options().channels,
                                       .kernel = kernel,
                                       .exchange = work.exchange},
                  own, transfer_stream(stream)};
        task.priority = static_cast<int>(transfers.options().priority);
        const TaskId id = transfers.add(task, ready[rank]);
        for (std::size_t other = 0; other < ready.size(); ++other)
            if (other != rank)
                for (const TaskId before : ready[other])
                    transfers.graph().add_edge({before, id, 1, where_ranks_meet});
        done.push_back({id});
    }
    return done;
}

}  // namespace

RankTasks library_collective(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) {
    return by_kernel<CollectiveKernel::library>(work, ready, transfers);
}
RankTasks one_shot_collective(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) {
    return by_kernel<CollectiveKernel::one_shot>(work, ready, transfers);
}
RankTasks two_shot_collective(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) {
    return by_kernel<CollectiveKernel::two_shot>(work, ready, transfers);
}
RankTasks exchange_by_deepep(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) {
    return by_kernel<CollectiveKernel::deepep>(work, ready, transfers);
}
RankTasks tensorrt_llm_collective(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) {
    return by_kernel<CollectiveKernel::tensorrt_llm>(work, ready, transfers);
}

}  // namespace overlap
