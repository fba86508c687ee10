#include "sim/collectives/collective_algorithm.hpp"

namespace overlap {
namespace {

// One kernel a rank does the whole collective; no kernel makes progress before all are launched.
class LibraryCollective final : public CollectiveAlgorithm {
public:
    bool handles(CollectiveKind) const override { return true; }

    RankTasks build(const CollectiveWork& work, const RankTasks& ready, Transfers& transfers) const override {
        if (transfers.ranks() == 1) return ready;
        std::vector<TaskId> all_ready;
        for (const auto& tasks : ready) all_ready.insert(all_ready.end(), tasks.begin(), tasks.end());
        RankTasks done;
        for (int rank = 0; rank < transfers.ranks(); ++rank) {
            // Communicators of different groups have streams of their own.
            const int stream = transfers.are_all() ? rank : (rank + 1) % transfers.ranks();
            Task task{CollectiveKernelWork{work.kind, work.operand, transfers.options().channels}, rank,
                      transfer_stream(stream)};
            task.priority = static_cast<int>(transfers.options().priority);
            done.push_back({transfers.add(task, all_ready)});
        }
        return done;
    }

    CollectiveSize size(CollectiveKind, double ready, const Transfers& transfers) const override {
        const double ranks = transfers.ranks();
        if (ranks == 1) return {{}, ready};
        return {{ranks, ranks * ranks * ready}, 1};
    }
};

}  // namespace

std::unique_ptr<CollectiveAlgorithm> make_library_collective() {
    return std::make_unique<LibraryCollective>();
}

}  // namespace overlap
