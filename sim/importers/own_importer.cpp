#include <cmath>

#include "sim/core/config_reader.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
namespace {

// A measured case (configs/schema/measured_case.schema.json); only its spans matter here.
class OwnImporter final : public TraceImporter {
public:
    RecordedTrace read(const std::filesystem::path& path) const override {
        const Json json = read_json_file(path);
        ConfigObject file(json, path.string());
        RecordedTrace trace;
        trace.recorded_by = file.text("system");
        if (!file.has("spans")) file.fail("spans", "is missing: the case was measured without spans");
        for (ConfigObject& entry : file.objects("spans")) {
            const auto ns = [&](const std::string& key) {
                return std::llround(entry.number(key, non_negative) * 1e3);
            };
            trace.spans.push_back({entry.text("name"),
                                   static_cast<TaskKind>(entry.choice("kind", task_kind_names)),
                                   static_cast<int>(entry.integer("gpu", 0, 1'000'000)), entry.text("stream"),
                                   ns("start_us"), ns("end_us")});
        }
        return trace;
    }
};

}  // namespace

std::unique_ptr<TraceImporter> make_own_importer() {
    return std::make_unique<OwnImporter>();
}

}  // namespace overlap
