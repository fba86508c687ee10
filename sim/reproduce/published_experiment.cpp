#include "sim/reproduce/published_experiment.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/file_version.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

/// [low, high] of {"relative_pct": 10}, {"absolute": 3} (in the case's unit) or {"range": [1.5, 1.8]}.
void read_tolerance(ConfigObject tolerance, PublishedCase& one) {
    const std::array<std::string, 3> kinds{"relative_pct", "absolute", "range"};
    const std::vector<std::string> keys = tolerance.keys();
    if (keys.size() != 1 || !contains(kinds, keys.front()))
        tolerance.fail("", "needs one of 'relative_pct', 'absolute', 'range'");
    if (keys.front() == "range") {
        const std::vector<double> range = tolerance.numbers("range", {-1e300, 1e300});
        if (range.size() != 2 || range[0] > range[1])
            tolerance.fail("range", "is not [lowest, highest] that is accepted");
        one.low = range[0];
        one.high = range[1];
        return;
    }
    const double margin = keys.front() == "absolute"
                              ? tolerance.number("absolute", positive)
                              : std::abs(one.published) * tolerance.number("relative_pct", positive) / 100;
    one.low = one.published - margin;
    one.high = one.published + margin;
}

PublishedCase read_case(ConfigObject& object) {
    const std::array<std::string, 2> states{"enforced", "known_gap"};
    PublishedCase one;
    one.name = object.text("name");
    one.kind = static_cast<CaseKind>(object.choice("kind", case_kind_names));
    if (object.has("where")) one.where = object.text("where");
    one.value = object.text("value");
    if (object.has("over")) one.over = static_cast<Aggregate>(object.choice("over", aggregate_names));
    one.published = object.number("published", {-1e300, 1e300});
    if (object.has("unit")) one.unit = object.text("unit");
    read_tolerance(object.object("tolerance"), one);
    one.known_gap = object.choice("status", states) == 1;
    if (one.known_gap) one.reason = object.text("reason");
    object.finish();
    return one;
}

/// Throws UserError if `name` can't be used in an expression.
void require_plain(const ConfigObject& object, const std::string& name) {
    const bool plain = !name.empty() && std::ranges::all_of(name, [](unsigned char letter) {
        return std::isalnum(letter) != 0 || letter == '_';
    });
    if (!plain || std::isdigit(static_cast<unsigned char>(name.front())) != 0)
        object.fail(name, "is no name of a variant (letters, digits and _ , not a digit first)");
}

std::map<std::string, Json> read_variants(ConfigObject variants) {
    std::map<std::string, Json> read;
    for (const std::string& name : variants.keys()) {
        require_plain(variants, name);
        ConfigObject fields = variants.object(name);
        for (const std::string& field : fields.keys()) require_field(fields, field);
        read[name] = variants.raw(name);
    }
    if (read.empty()) variants.fail("", "has no variant");
    return read;
}

std::map<std::string, std::vector<std::string>> read_fastest_of(ConfigObject groups,
                                                                const std::map<std::string, Json>& variants) {
    const std::vector<std::string> known = keys_of(variants);
    std::map<std::string, std::vector<std::string>> read;
    for (const std::string& name : groups.keys()) {
        require_plain(groups, name);
        if (variants.contains(name)) groups.fail(name, "is the name of a variant");
        const std::vector<std::string> members = groups.texts(name);
        if (members.empty()) groups.fail(name, "names no variant");
        for (const std::string& member : members)
            if (!variants.contains(member))
                groups.fail(
                    name, "names " + in_quotes(member) + ", which is no variant" + suggestion(member, known));
        read[name] = members;
    }
    return read;
}

}  // namespace

PublishedExperiment read_experiment(const std::filesystem::path& path, const ConfigFolder& folder) {
    const Json json = upgraded(read_json_file(path), "experiment", path.string());
    ConfigObject file(json, path.string());
    const int version = newest_version("experiment");
    file.integer("schema", version, version);
    PublishedExperiment experiment{path.parent_path().filename().string(),
                                   file.text("name"),
                                   file.text("description"),
                                   file.text("source"),
                                   path.string(),
                                   {file.object("scenarios"), "/scenarios", folder},
                                   read_variants(file.object("variants")),
                                   {},
                                   {}};
    if (file.has("fastest_of"))
        experiment.fastest_of = read_fastest_of(file.object("fastest_of"), experiment.variants);
    for (ConfigObject& one : file.objects("cases")) experiment.cases.push_back(read_case(one));
    if (experiment.cases.empty()) file.fail("cases", "has no case");
    file.finish();
    return experiment;
}

std::vector<std::filesystem::path> experiment_files(const std::string& system, const ConfigFolder& folder) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(system, ignored)) return {system};
    std::vector<std::filesystem::path> files;
    const std::vector<std::string> systems = folder.published_systems();
    if (!system.empty() && !contains(systems, system))
        throw UserError("command line: " + in_quotes(system) +
                        " is no file, and no folder of configs/experiments" + suggestion(system, systems));
    for (const std::string& one : system.empty() ? systems : std::vector{system})
        for (const auto& entry : std::filesystem::directory_iterator(folder.experiments() / one))
            if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

}  // namespace overlap
