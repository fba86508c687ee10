#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

// shard_direct with a single transfer stream (ScheduleEntry::single_stream): one peer at a time.
class ShardP2p final : public Schedule {
public:
    TaskGraph build(const Workload& workload, const Topology& topology,
                    const ScheduleParams& params) const override {
        return build_pieces(*workload.pair(), topology, params, PiecePoint{});
    }
    GraphSize size(const Workload& workload, const Topology& topology,
                   const ScheduleParams& params) const override {
        return size_of_pieces(*workload.pair(), topology, params, PiecePoint{});
    }
};

}  // namespace

std::unique_ptr<Schedule> make_shard_p2p() {
    return std::make_unique<ShardP2p>();
}

}  // namespace overlap
