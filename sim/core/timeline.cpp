#include "sim/core/timeline.hpp"

#include <algorithm>
#include <array>

#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

bool is_one_of(TaskKind kind, std::span<const TaskKind> kinds) {
    return contains(kinds, kind);
}

constexpr std::array computation{TaskKind::gemm, TaskKind::memory_bound};
constexpr std::array both{TaskKind::copy, TaskKind::reduce, TaskKind::collective, TaskKind::gemm,
                          TaskKind::memory_bound};

}  // namespace

Seconds covered(std::vector<Interval> intervals) {
    std::ranges::sort(intervals);
    Seconds sum;
    for (auto next = intervals.begin(); next != intervals.end();) {
        Interval merged = *next++;
        for (; next != intervals.end() && next->first <= merged.second; ++next)
            merged.second = std::max(merged.second, next->second);
        sum += merged.second - merged.first;
    }
    return sum;
}

int Timeline::gpus() const {
    int highest = -1;
    for (const Span& span : spans_) highest = std::max(highest, span.gpu);
    return highest + 1;
}

Seconds Timeline::end() const {
    Seconds latest;
    for (const Span& span : spans_) latest = std::max(latest, span.end);
    return latest;
}

Seconds Timeline::busy(int gpu, std::span<const TaskKind> kinds) const {
    std::vector<Interval> intervals;
    for (const Span& span : spans_)
        if (span.gpu == gpu && is_one_of(span.kind, kinds)) intervals.emplace_back(span.start, span.end);
    return covered(std::move(intervals));
}

Seconds Timeline::exposed_communication() const {
    std::vector<Activity> activities;
    activities.reserve(spans_.size());
    for (const Span& span : spans_) activities.push_back({span.kind, span.gpu, span.start, span.end});
    return overlap::exposed_communication(activities);
}

Seconds exposed_communication(std::span<const Activity> activities) {
    struct OfGpu {
        std::vector<Interval> computation, both;
    };
    std::vector<OfGpu> by_gpu;
    for (const Activity& activity : activities) {
        const auto gpu = static_cast<std::size_t>(activity.gpu);
        if (gpu >= by_gpu.size()) by_gpu.resize(gpu + 1);
        OfGpu& own = by_gpu[gpu];
        if (is_one_of(activity.kind, computation)) own.computation.emplace_back(activity.start, activity.end);
        if (is_one_of(activity.kind, both)) own.both.emplace_back(activity.start, activity.end);
    }
    Seconds most;
    for (OfGpu& own : by_gpu)
        most = std::max(most, covered(std::move(own.both)) - covered(std::move(own.computation)));
    return most;
}

}  // namespace overlap
