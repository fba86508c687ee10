#include <algorithm>

#include "sim/core/errors.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {

std::string problem_of(const RecordedSpan& span) {
    if (span.gpu < 0 || span.gpu > largest_gpu)
        return "is on GPU " + std::to_string(span.gpu) + ", expected 0 to " + std::to_string(largest_gpu);
    if (span.end_ns < span.start_ns) return "ends before it starts";
    if (span.start_ns < 0 || span.end_ns > latest_recorded_ns)
        return "runs from " + std::to_string(span.start_ns) + " to " + std::to_string(span.end_ns) +
               " ns, expected times from 0 to " + std::to_string(latest_recorded_ns);
    return {};
}

void RecordedTrace::add_host_waits(std::vector<HostWait> waits) {
    std::map<std::int64_t, std::vector<RecordedSpan*>>
        launched;  // by process, in the order of their launches
    for (RecordedSpan& span : spans)
        if (span.launch.ns) launched[span.launch.process].push_back(&span);
    const auto launch = [](const RecordedSpan* span) { return *span->launch.ns; };
    for (auto& [process, of_process] : launched) std::ranges::stable_sort(of_process, {}, launch);
    for (const HostWait& wait : waits) {
        auto& of_process = launched[wait.process];
        const auto next = std::ranges::lower_bound(of_process, wait.end_ns, {}, launch);
        if (next != of_process.end()) (*next)->launch.host_waits.emplace_back(wait.start_ns, wait.end_ns);
    }
}

Timeline timeline_of(std::span<const RecordedSpan> spans) {
    std::int64_t first = INT64_MAX;
    for (const RecordedSpan& span : spans) first = std::min(first, span.start_ns);
    const auto time = [&](std::int64_t ns) { return Seconds(static_cast<double>(ns - first) * 1e-9); };
    std::vector<Span> result;
    for (const RecordedSpan& span : spans)
        result.push_back({span.name, span.kind, static_cast<int>(span.gpu), span.track, time(span.start_ns),
                          time(span.end_ns)});
    return Timeline(std::move(result));
}

}  // namespace overlap
