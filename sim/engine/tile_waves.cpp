#include "sim/engine/tile_waves.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace overlap {
namespace {

/// Compute units whose waves differ by no more than rounding count as one group.
constexpr double same_wave = 1e-9;
/// Thread blocks of a cluster: two in all GEMMs of residency.jsonl but one (`cluster 3` and `5`).
constexpr int pair = 2;
/// A GEMM that started on less than half of its units ends its last tiles spread over this share of a wave, in
/// `steps` steps. Derived: in traces/h100_2/kernels a local copy behind the first of two GEMMs on two streams, 5 to
/// 29 us alone, ends 2 to 9 us after the second one of two waves of 24 to 97 us.
constexpr double spread = 0.4;
constexpr int steps = 4;

}  // namespace

TileWaves::TileWaves(int tiles, int waves, int most, int given)
    : waves_(waves), each_(std::min(waves, 2)), late_(most - given), took_over_(2 * given < most) {
    if (waves > 1) kept_ = std::clamp(tiles - each_ * (given - pair), 0, each_ * late_);
    const int taken = std::min(tiles - kept_, each_ * given);
    open_ = tiles - taken - kept_;
    const int with_second = std::max(taken - given, 0);
    add(with_second, 1, 1);
    add(std::min(taken, given) - with_second, 1, 0);
}

int TileWaves::waves_to_skip() const {
    if (late_ > 0 || groups_.size() != 1) return 0;
    return groups_[0].own + open_ / groups_[0].units;
}

double TileWaves::next() const {
    if (const int skipped = waves_to_skip(); skipped > 0) return groups_[0].next + skipped;
    double wave = std::numeric_limits<double>::infinity();
    for (const Group& group : groups_) wave = std::min(wave, group.next);
    return wave;
}

bool TileWaves::ends_next() const {
    if (waves_to_skip() > 0) return open_ % groups_[0].units == 0;
    const double now = next() + same_wave;
    return !groups_.empty() && open_ == 0 && kept_ == 0 &&
           std::all_of(groups_.begin(), groups_.end(),
                       [&](const Group& group) { return group.own == 0 && group.next <= now; });
}

int TileWaves::go_on() {
    const double now = next();
    if (waves_to_skip() > 0) {
        Group& all = groups_[0];
        all = {all.units, now, 0};
        open_ %= all.units;
    }
    int leaving = 0;
    boost::container::small_vector<Group, 4> ended;
    const auto over = std::partition(groups_.begin(), groups_.end(),
                                     [&](const Group& group) { return group.next > now + same_wave; });
    ended.assign(over, groups_.end());
    groups_.erase(over, groups_.end());
    for (const Group& group : ended) {
        if (group.own > 0) {
            add(group.units, now + 1, group.own - 1);
            continue;
        }
        const int staying = std::min(group.units, open_);
        open_ -= staying;
        leaving += group.units - staying;
        add(staying, now + 1, 0);
    }
    return leaving;
}

void TileWaves::add(int units, double next, int own) {
    if (units <= 0) return;
    if (!took_over_ || own > 0 || open_ > 0 || kept_ > 0 || units < steps) {
        groups_.push_back({units, next, own});
        return;
    }
    for (int step = 0, left = units; step < steps; ++step) {
        const int these = left / (steps - step);
        left -= these;
        groups_.push_back({these, next - spread * (steps - 1 - step) / (steps - 1), 0});
    }
}

int TileWaves::wanted() const {
    return std::min(late_, (kept_ + each_ - 1) / each_ + open_ + second_tiles_to_give());
}

int TileWaves::second_tiles_to_give() const {
    if (waves_ != 2 || took_over_) return 0;
    int waiting = 0;
    for (const Group& group : groups_) waiting += group.units * group.own;
    return std::max(waiting - 1, 0);
}

void TileWaves::give_second_tiles(int count) {
    if (count == 0) return;
    // From the compute units whose first tiles end earliest. Late compute units, whose first tiles end later, keep
    // the two tiles that were reserved for each of them.
    std::sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
        return std::pair(a.next, a.own) < std::pair(b.next, b.own);
    });
    boost::container::small_vector<Group, 4> after;
    for (const Group& group : groups_) {
        const int given = group.own > 0 ? std::min(count, group.units) : 0;
        count -= given;
        if (given < group.units) after.push_back({group.units - given, group.next, group.own});
        if (given > 0) after.push_back({given, group.next, 0});
    }
    groups_ = std::move(after);
}

void TileWaves::join(int units, double now) {
    late_ -= units;
    const int taken = std::min(kept_, each_ * units);
    kept_ -= taken;
    // In a body of two waves a compute unit takes both reserved tiles, even if others that come with it find none.
    const int takers = waves_ == 2 ? std::min(units, (taken + 1) / 2) : units;
    const int first = std::min(taken, takers), second = taken - first;
    add(second, now + 1, 1);
    add(first - second, now + 1, 0);
    const int other = std::min(units - first, open_);
    open_ -= other;
    const int of_others = std::min(units - first - other, second_tiles_to_give());
    give_second_tiles(of_others);
    add(other + of_others, now + 1, 0);
}

}  // namespace overlap
