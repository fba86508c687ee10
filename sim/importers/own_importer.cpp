#include <cmath>

#include "sim/core/timeline_json.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
// A measured case (configs/schema/measured_case.schema.json); only its spans matter here.
RecordedTrace read_own_trace(const std::filesystem::path& path, const KernelTable&) {
    const Json json = read_json_file(path);
    ConfigObject file(json, path.string());
    RecordedTrace trace;
    trace.recorded_by = file.text("system");
    if (!file.has("spans")) file.fail("spans", "is missing: the case was measured without spans");
    const auto ns = [](Seconds time) { return std::llround(time.si() * 1e9); };
    const Timeline recorded = read_spans(file);
    for (const Span& span : recorded.spans()) {
        const RecordedSpan read{.name = span.name,
                                .gpu = span.gpu,
                                .track = span.track,
                                .start_ns = ns(span.start),
                                .end_ns = ns(span.end)};
        trace.add(read, KernelUse{span.kind},
                  [&](const std::string& problem) { file.fail("spans", problem); });
    }
    return trace;
}

}  // namespace overlap
