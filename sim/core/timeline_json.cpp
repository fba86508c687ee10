#include "sim/core/timeline_json.hpp"

namespace overlap {
namespace {

/// Times since the start of a run: at most eleven days.
constexpr Range run_us{0.0, 1e12};

// clang-format off
InputKeys<Span> keys_of_spans() {
    static const std::vector<InputKey<Span>> keys{
        Field<Span>::checked("task", "Its number in the graph.").whole().plain_in({0, 1e15}).or_else("not known"),
        text_key<Span>("name", &Span::name, "Of the task, as in the simulated trace."),
        plain_field<&Span::kind>("kind", task_kind_names, "Kind of task."),
        field<&Span::gpu>("gpu", "Where it ran.").plain_in({0, largest_gpu}),
        text_key<Span>("stream", &Span::track, "In-order queue of that GPU."),
        field<&Span::start>("start_us", "From the release.").plain_in(run_us),
        field<&Span::end>("end_us", "The same.").plain_in(run_us)};
    return keys;
}
// clang-format on

}  // namespace

Timeline read_spans(ConfigObject& measured) {
    std::vector<Span> spans;
    for (ConfigObject& entry : measured.objects("spans")) {
        spans.push_back(read_keys<Span>(entry, keys_of_spans()));
        if (spans.back().end < spans.back().start) entry.fail("end_us", "is before start_us");
    }
    return Timeline(std::move(spans));
}

Json spans_schema() {
    return {{"description", "Tasks of one run by device timestamps; 0 is the release."},
            {"type", "array"},
            {"items", keys_schema("", keys_of_spans())}};
}

Json spans_json(const Timeline& timeline) {
    return mapped(timeline.spans(), [](const Span& span) { return written(span, keys_of_spans()); });
}

}  // namespace overlap
