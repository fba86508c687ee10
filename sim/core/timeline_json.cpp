#include "sim/core/timeline_json.hpp"

namespace overlap {
namespace {

/// Times since the start of a run: at most eleven days.
constexpr Range run_us{0.0, 1e12};

}  // namespace

Timeline read_spans(ConfigObject& measured) {
    std::vector<Span> spans;
    for (ConfigObject& entry : measured.objects("spans")) {
        if (entry.has("task")) entry.integer("task", 0, INT64_MAX);
        Span span;
        span.name = entry.text("name");
        span.kind = static_cast<TaskKind>(entry.choice("kind", task_kind_names));
        span.gpu = static_cast<int>(entry.integer("gpu", 0, largest_gpu));
        span.track = entry.text("stream");
        span.start = microseconds(entry.number("start_us", run_us));
        span.end = microseconds(entry.number("end_us", run_us));
        if (span.end < span.start) entry.fail("end_us", "is before start_us");
        entry.finish();
        spans.push_back(std::move(span));
    }
    return Timeline(std::move(spans));
}

Json spans_json(const Timeline& timeline) {
    Json spans = Json::array();
    for (const Span& span : timeline.spans())
        spans.push_back({{"name", span.name},
                         {"kind", task_kind_names[static_cast<std::size_t>(span.kind)]},
                         {"gpu", span.gpu},
                         {"stream", span.track},
                         {"start_us", to_microseconds(span.start)},
                         {"end_us", to_microseconds(span.end)}});
    return spans;
}

}  // namespace overlap
