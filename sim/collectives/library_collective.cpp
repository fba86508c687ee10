#include "sim/collectives/collective_algorithm.hpp"

namespace overlap {
namespace {

/// A kernel polls its peers' flags from its start on; the bytes come after.
constexpr double where_ranks_meet = 0.01;

// One kernel a rank does the whole collective. It is launched when its own GPU is ready, and waits in itself for the
// others: no event goes from one GPU to another, and the time in which ranks find each other is in the measured
// latency.
class KernelCollective final : public CollectiveAlgorithm {
public:
    explicit KernelCollective(CollectiveKernel kernel) : kernel_(kernel) {}

    bool handles(CollectiveKind kind) const override {
        return kernel_ == CollectiveKernel::library || kind == CollectiveKind::all_reduce;
    }

    RankTasks build(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) const override {
        if (transfers.ranks() == 1) return ready;
        RankTasks done;
        for (std::size_t rank = 0; rank < ready.size(); ++rank) {
            // Communicators of different groups have streams of their own.
            const int own = static_cast<int>(rank);
            const int stream = transfers.are_all() ? own : (own + 1) % transfers.ranks();
            Task task{CollectiveKernelWork{.kind = work.kind,
                                           .operand = work.operand,
                                           .cus = transfers.options().channels,
                                           .kernel = kernel_},
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

    CollectiveSize size(CollectiveKind, double ready, const Transfers& transfers) const override {
        const double ranks = transfers.ranks();
        if (ranks == 1) return {{}, ready};
        return {{ranks, ranks * ranks * ready}, 1};
    }

private:
    CollectiveKernel kernel_;
};

}  // namespace

std::unique_ptr<CollectiveAlgorithm> make_library_collective() {
    return std::make_unique<KernelCollective>(CollectiveKernel::library);
}
std::unique_ptr<CollectiveAlgorithm> make_one_shot() {
    return std::make_unique<KernelCollective>(CollectiveKernel::one_shot);
}
std::unique_ptr<CollectiveAlgorithm> make_two_shot() {
    return std::make_unique<KernelCollective>(CollectiveKernel::two_shot);
}
std::unique_ptr<CollectiveAlgorithm> make_tensorrt_llm() {
    return std::make_unique<KernelCollective>(CollectiveKernel::tensorrt_llm);
}

}  // namespace overlap
