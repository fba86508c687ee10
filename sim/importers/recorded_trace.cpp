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

std::vector<RecordedSpan> merged(std::span<const RecordedTrace> traces) {
    std::map<std::int64_t, std::int64_t> agents;
    for (const RecordedTrace& trace : traces)
        for (const RecordedSpan& span : trace.spans)
            if (trace.gpus_are_agents) agents.emplace(span.gpu, 0);
    std::int64_t gpus = 0;
    for (auto& [agent, gpu] : agents) gpu = gpus++;

    std::vector<RecordedSpan> result;
    std::map<std::int64_t, int> clock_of_gpu;
    int clock = 0;
    for (const RecordedTrace& trace : traces) {
        if (trace.own_clock) ++clock;
        for (RecordedSpan span : trace.spans) {
            if (trace.gpus_are_agents) span.gpu = agents.at(span.gpu);
            if (trace.own_clock) span.clock = clock;
            if (clock_of_gpu.emplace(span.gpu, span.clock).first->second != span.clock)
                throw UserError("GPU " + std::to_string(span.gpu) +
                                " is in two of the files, expected the files of one recording, a rank each");
            result.push_back(std::move(span));
        }
    }
    return result;
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
