#include "sim/core/timeline.hpp"

#include <algorithm>
#include <array>

namespace overlap {
namespace {

using Interval = std::pair<Seconds, Seconds>;

std::vector<Interval> union_of(const std::vector<Span>& spans, int gpu, std::span<const TaskKind> kinds) {
    std::vector<Interval> intervals;
    for (const Span& span : spans)
        if (span.gpu == gpu && std::find(kinds.begin(), kinds.end(), span.kind) != kinds.end())
            intervals.emplace_back(span.start, span.end);
    std::sort(intervals.begin(), intervals.end());
    std::vector<Interval> merged;
    for (const Interval& next : intervals) {
        if (!merged.empty() && next.first <= merged.back().second)
            merged.back().second = std::max(merged.back().second, next.second);
        else
            merged.push_back(next);
    }
    return merged;
}

Seconds length(const std::vector<Interval>& intervals) {
    Seconds sum;
    for (const auto& [start, end] : intervals) sum += end - start;
    return sum;
}

constexpr std::array computation{TaskKind::gemm, TaskKind::memory_bound};
constexpr std::array both{TaskKind::copy, TaskKind::reduce, TaskKind::collective, TaskKind::gemm,
                          TaskKind::memory_bound};

}  // namespace

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
    return length(union_of(spans_, gpu, kinds));
}

Seconds Timeline::exposed_communication() const {
    Seconds most;
    for (int gpu = 0; gpu < gpus(); ++gpu) most = std::max(most, busy(gpu, both) - busy(gpu, computation));
    return most;
}

}  // namespace overlap
