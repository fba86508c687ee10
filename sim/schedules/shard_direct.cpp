#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

// Whole shards from (to) all peers at once; the own shard first (last), then a GEMM for each in order
// r+1, r+2, … `shard_p2p` is the same with a single transfer stream: one peer at a time.
class ShardDirect final : public Schedule {
public:
    TaskGraph build(const Workload& workload, const Topology& topology,
                    const ScheduleParams& params) const override {
        return build_pieces(*workload.pair(), topology, params, PiecePoint{});
    }
    GraphSize size(const Workload& workload, const Topology& topology,
                   const ScheduleParams& params) const override {
        return size_of_pieces(*workload.pair(), topology, params, PiecePoint{});
    }
    bool builds_representatives(const Workload&, const ScheduleParams&) const override { return true; }
};

}  // namespace

std::unique_ptr<Schedule> make_shard_direct() {
    return std::make_unique<ShardDirect>();
}

}  // namespace overlap
