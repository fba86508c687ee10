#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

// The schedules of "Design Space Exploration of DMA based Finer-Grain Compute Communication Overlap": pieces
// one level finer than a shard, from all peers at every step. A named point fixes the three axes; `ficco` reads
// them. Without chunks, hetero and unfused, whole shards come from (go to) all peers at once: the own shard first
// (last), then a GEMM for each in order r+1, r+2, …
class Ficco final : public Schedule {
public:
    explicit Ficco(const std::optional<PiecePoint>& fixed) : fixed_(fixed) {}
    TaskGraph build(const Workload& workload, const Topology& topology,
                    const ScheduleParams& params) const override {
        return build_pieces(*workload.pair(), topology, params, point(params));
    }
    GraphSize size(const Workload& workload, const Topology& topology,
                   const ScheduleParams& params) const override {
        return size_of_pieces(*workload.pair(), topology, params, point(params));
    }
    bool builds_representatives(const Workload&, const ScheduleParams&) const override { return true; }
    PiecePoint point(const ScheduleParams& params) const override {
        return fixed_.value_or(PiecePoint{params.comm_shape, params.uniformity, params.granularity});
    }

private:
    std::optional<PiecePoint> fixed_;
};

}  // namespace

std::unique_ptr<Schedule> make_ficco(const std::optional<PiecePoint>& fixed) {
    return std::make_unique<Ficco>(fixed);
}

}  // namespace overlap
