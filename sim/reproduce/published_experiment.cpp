#include "sim/reproduce/published_experiment.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/input_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

constexpr Range any_figure{-1e300, 1e300};

const std::string& name_of(ConclusionState state) {
    return conclusion_state_names[static_cast<std::size_t>(state)];
}

// clang-format off
/// What is accepted: [low, high].
InputKeys<PublishedCase> tolerance_keys() {
    using C = PublishedCase;
    const auto within = [](const std::string& key, auto of) {
        const auto read = [=](ConfigObject& from, const std::string& name, C& to) {
            const double margin = of(to, from.number(name, positive));
            to.low = to.published - margin;
            to.high = to.published + margin;
        };
        return InputKey<C>(key, {{"type", "number"}, {"exclusiveMinimum", 0}}, read).optional();
    };
    static const std::vector<InputKey<C>> keys{
        within("relative_pct", [](const C& one, double given) { return std::abs(one.published) * given / 100; }),
        within("absolute", [](const C&, double given) { return given; }),
        InputKey<C>("range", {{"type", "array"}, {"minItems", 2}, {"maxItems", 2}, {"items", {{"type", "number"}}}}, [](ConfigObject& from, const std::string& key, C& to) {
            const std::vector<double> range = from.numbers(key, any_figure);
            if (range.size() != 2 || range[0] > range[1]) from.fail(key, "is not [lowest, highest] that is accepted");
            to.low = range[0];
            to.high = range[1];
        }).optional()};
    return keys;
}

InputKeys<PublishedCase> case_keys() {
    using C = PublishedCase;
    Json tolerance = keys_schema("Either a share of the published value, or so much of its unit, or what is accepted.", tolerance_keys());
    tolerance["minProperties"] = tolerance["maxProperties"] = 1;
    static const std::vector<InputKey<C>> keys{
        text_key<C>("name", &C::name, "What the figure is, with its conditions."),
        plain_field<&C::kind>("kind", case_kind_names, "independent: no measurement of the figure's source went into the device, its calibration or the scenario; "
            "same_source: another figure of that source did; fitted: this figure did; qualitative: an order, a count or a law."),
        text_key<C>("where", &C::where, "Expression over swept fields and results: the scenarios that it is about; all where there is none.").optional(),
        text_key<C>("value", &C::value, "Expression over <variant>.<number of its result>, such as dma.makespan_us or cu.losses_us.contention, parameters that are numbers, "
            "such as cu.params.copy_cus, and swept fields."),
        plain_field<&C::over>("over", aggregate_names, "How the values of several scenarios become one; count: how many are true.").optional(),
        field<&C::published>("published", "The figure.").plain_in(any_figure),
        text_key<C>("unit", &C::unit, "Of the figure.").optional(),
        {"tolerance", tolerance, [](ConfigObject& from, const std::string& key, C& to) {
            ConfigObject given = from.object(key);
            to = read_keys(given, tolerance_keys(), to);
            if (given.keys().size() != 1) given.fail("", "needs one of 'relative_pct', 'absolute', 'range'");
        }},
        plain_field<&C::known_gap>("status", gap_states, "known_gap: the prediction is outside; it is an error when it no longer is."),
        text_key<C>("reason", &C::reason, "Of a known gap: the mechanism that is missing.").only_of_gap()};
    return keys;
}
InputKeys<PublishedConclusion> conclusion_keys() {
    using C = PublishedConclusion;
    // Read last: what a state needs is known by then.
    const auto read_state = [](ConfigObject& from, const std::string& key, C& to) {
        to.state = static_cast<ConclusionState>(from.choice(key, conclusion_state_names));
        if (to.value.empty() != (to.state == ConclusionState::not_expressible))
            from.fail(key, "is " + in_quotes(name_of(to.state)) + (to.value.empty() ? ", which needs 'value'" : ", so there is no 'value'"));
        if (to.reason.empty() && to.state != ConclusionState::right)
            from.fail(key, "is " + in_quotes(name_of(to.state)) + ", which needs 'reason'");
    };
    static const std::vector<InputKey<C>> keys{
        text_key<C>("name", &C::name, "The conclusion, as the source draws it."),
        text_key<C>("where", &C::where, "As of a case.").optional(),
        text_key<C>("value", &C::value, "As of a case. The conclusion holds where the number is above 0.").optional(),
        plain_field<&C::over>("over", aggregate_names, "As of a case.").optional(),
        text_key<C>("reason", &C::reason, "Why it is reversed, or what is missing to ask for it.").optional(),
        InputKey<C>("status", {{"description", "right: it holds; reversed: it does not; not_expressible: no run can ask for it. It is an error if this is no longer so."},
            {"enum", conclusion_state_names}}, read_state)};
    return keys;
}
// clang-format on

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

// clang-format off
InputKeys<PublishedStatement> experiment_keys() {
    using S = PublishedStatement;
    const Json path{{"$ref", "#/definitions/field"}}, name{{"pattern", "^[A-Za-z_][A-Za-z0-9_]*$"}};
    static const std::vector<InputKey<S>> keys{
        version_key<S>("experiment", " 1 had no 'kind' of a case."), text_key<S>("name", &S::name, "As the file is called, without .json."),
        text_key<S>("description", &S::description, "What the source measured."), text_key<S>("source", &S::source, "Paper or repository, with the place in it."),
        object_key<S>("scenarios", &S::space, keys_schema("Run configs as in a sweep file (sweep.schema.json); a single one where only 'base' is given.", space_keys())),
        {"variants", map_schema("Each scenario is run once a variant, with these fields of the run config set.", name, {{"type", "object"}, {"propertyNames", path}}, 1),
            [](ConfigObject& from, const std::string& key, S& to) { to.variants = read_variants(from.object(key)); }},
        InputKey<S>("fastest_of", map_schema("A name for the fastest of these variants, scenario by scenario (the first of equals); cases use it like a variant's.", name,
            {{"type", "array"}, {"minItems", 1}, {"items", {{"type", "string"}}}}),
            [](ConfigObject& from, const std::string& key, S& to) { to.fastest_of = read_fastest_of(from.object(key), to.variants); }).optional(),
        list_key<S>("cases", &S::cases, "The source's figures.", case_keys()),
        list_key<S>("conclusions", &S::conclusions, "What the source concludes from them.", conclusion_keys()).optional()};
    return keys;
}
// clang-format on

}  // namespace

PublishedExperiment read_experiment(const std::filesystem::path& path, const ConfigFolder& folder) {
    const Json json = upgraded(read_json_file(path), "experiment", path.string());
    ConfigObject file(json, path.string());
    const PublishedStatement statement = read_keys<PublishedStatement>(file, experiment_keys());
    return {statement,
            path.parent_path().filename().string(),
            path.string(),
            {ConfigObject(statement.space, path.string(), "/scenarios"), "/scenarios", folder}};
}

Json experiment_schema() {
    Json schema = file_of_keys(
        "Experiment",
        "Published figures of one source and the run configs that predict them, for 'sim reproduce'. An experiment "
        "sets only what its source states; everything else comes from the device's calibration.",
        experiment_keys());
    schema["definitions"] = sweep_definitions();
    return schema;
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
