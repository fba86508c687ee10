#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

// The schedules of "Design Space Exploration of DMA based Finer-Grain Compute Communication Overlap": pieces
// one level finer than a shard, from all peers at every step. A named point fixes
// the three axes; `ficco` reads them.
class Ficco final : public Schedule {
public:
    Ficco() = default;
    explicit Ficco(PiecePoint point) : fixed_(true), point_(point) {}

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
        return fixed_ ? point_ : PiecePoint{params.comm_shape, params.uniformity, params.granularity};
    }

private:
    bool fixed_ = false;
    PiecePoint point_;
};

}  // namespace

std::unique_ptr<Schedule> make_ficco() {
    return std::make_unique<Ficco>();
}

template <CommShape shape, Uniformity uniformity, Granularity granularity>
std::unique_ptr<Schedule> make_ficco_point() {
    return std::make_unique<Ficco>(PiecePoint{shape, uniformity, granularity});
}

using enum CommShape;
using enum Uniformity;
using enum Granularity;
template std::unique_ptr<Schedule> make_ficco_point<one_d, uniform, fused>();
template std::unique_ptr<Schedule> make_ficco_point<one_d, hetero, fused>();
template std::unique_ptr<Schedule> make_ficco_point<one_d, uniform, unfused>();
template std::unique_ptr<Schedule> make_ficco_point<one_d, hetero, unfused>();
template std::unique_ptr<Schedule> make_ficco_point<two_d, uniform, fused>();
template std::unique_ptr<Schedule> make_ficco_point<two_d, hetero, fused>();
template std::unique_ptr<Schedule> make_ficco_point<two_d, uniform, unfused>();
template std::unique_ptr<Schedule> make_ficco_point<two_d, hetero, unfused>();

}  // namespace overlap
