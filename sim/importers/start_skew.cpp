#include "sim/importers/start_skew.hpp"

#include <algorithm>
#include <map>

namespace overlap {

Seconds clip_start_skew(Iteration& iteration) {
    std::map<std::int64_t, RecordedSpan*> first;  // by GPU: its first kernel that waits
    std::map<std::int64_t, bool> gpus;
    for (RecordedSpan& span : iteration.spans) {
        gpus[span.gpu] = true;
        if (!span.waits) continue;
        RecordedSpan*& earliest = first[span.gpu];
        if (earliest == nullptr || span.start_ns < earliest->start_ns) earliest = &span;
    }
    if (first.size() < std::max<std::size_t>(2, gpus.size())) return Seconds();
    std::int64_t shortest = INT64_MAX, longest_wait = 0;
    for (const auto& [gpu, span] : first) {
        if (span->name != first.begin()->second->name) return Seconds();
        shortest = std::min(shortest, span->end_ns - span->start_ns);
    }
    for (const auto& [gpu, span] : first) {
        const std::int64_t wait = span->end_ns - span->start_ns - shortest, arrived = span->start_ns;
        longest_wait = std::max(longest_wait, wait);
        for (RecordedSpan& other : iteration.spans) {
            if (other.gpu != gpu || other.start_ns > arrived) continue;
            other.start_ns += wait;
            // What ran beside the wait keeps its end.
            if (&other != span) other.end_ns = std::max(other.start_ns, other.end_ns + (other.end_ns <= arrived ? wait : 0));
        }
    }
    return Seconds(static_cast<double>(longest_wait) * 1e-9);
}

}  // namespace overlap
