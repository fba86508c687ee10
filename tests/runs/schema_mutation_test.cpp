// Does each reader refuse what its file's schema refuses, and accept what it accepts? Shipped files, changed at one place.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <functional>
#include <regex>

#include "sim/calibrate/recipes/gemm_prior.hpp"
#include "sim/compare/compare_cases.hpp"
#include "sim/compare/measured_case.hpp"
#include "sim/importers/kernel_table.hpp"
#include "sim/reproduce/published_experiment.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/schedules/schedule.hpp"
#include "sim/sweep/design_space.hpp"
#include "sim/transformer/step_request.hpp"
#include "tests/schema.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::schema_mutation_test {
namespace {

namespace fs = std::filesystem;

struct Kind {
    std::string schema;
    std::vector<fs::path> samples;
    std::function<void(const fs::path&)> read;
    /// Changes that only the reader refuses: names of other files, values by the field that an axis sweeps.
    std::string only_reader = "";
    /// Changes that only the schema refuses.
    std::string only_schema = "";
};

std::vector<fs::path> files_below(const fs::path& folder, std::size_t every) {
    std::vector<fs::path> all, some;
    for (const auto& entry : fs::recursive_directory_iterator(source_folder / folder))
        if (entry.path().extension() == ".json") all.push_back(entry.path());
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); i += every) some.push_back(all[i]);
    return some;
}

/// A change of a JSON value at a pointer: without a key, with one more, with a value of another type, or with a value at or
/// beyond a bound of the schema.
struct Change {
    std::string what;
    Json changed;
};

Json of_another_type(const Json& value) {
    if (value.is_number()) return "seven";
    if (value.is_string()) return 7.5;
    if (value.is_boolean()) return "yes";
    return value.is_array() ? Json(true) : Json(Json::array({1.5}));
}

/// All changes of `file`: at each object, and at the first elements of each array.
void add_changes(const Json& file, const Json::json_pointer& at, std::vector<Change>& changes) {
    const Json& here = file[at];
    if (!at.empty()) {
        changes.push_back({at.to_string() + " of another type", file});
        changes.back().changed[at] = of_another_type(here);
    }
    if (here.is_object()) {
        changes.push_back({at.to_string() + "/colour more", file});
        changes.back().changed[at]["colour"] = "red";
        for (const auto& item : here.items()) {
            changes.push_back({(at / item.key()).to_string() + " less", file});
            changes.back().changed[at].erase(item.key());
            add_changes(file, at / item.key(), changes);
        }
    } else if (here.is_array()) {
        for (std::size_t i = 0; i < std::min<std::size_t>(here.size(), 2); ++i)
            add_changes(file, at / i, changes);
    }
}

/// Values at the bounds of a number, a text or a word by its schema, and beyond them.
std::vector<Json> values_by(const Json& schema) {
    if (schema.contains("const"))
        return {schema["const"], schema["const"].is_number() ? Json(7) : Json("seven")};
    if (schema.contains("enum")) return {schema["enum"].front(), schema["enum"].back(), "seven"};
    const Json type = schema.value("type", Json());
    if (type == "boolean") return {true};
    if (type == "string") return {"x"};
    if (type != "integer" && type != "number") return {};
    std::vector<Json> values;
    const auto both_sides = [&](double bound, double beyond) {
        for (const double value : {bound, beyond})
            values.push_back(type == "integer" ? Json(std::llround(value)) : Json(value));
    };
    if (schema.contains("exclusiveMinimum")) both_sides(schema["exclusiveMinimum"], 1.0);
    both_sides(schema.value("minimum", -1e9), schema.value("minimum", -1e9) - 1);
    both_sides(schema.value("maximum", 1e15), schema.value("maximum", 1e15) * 2);
    return values;
}

/// Changes of each property of the schema to its bounds, at each object and at the first elements of each array.
void add_bounds(const Json& file, const Json::json_pointer& at, const Json& schema, const Json& whole,
                std::vector<Change>& changes) {
    if (schema.contains("$ref"))
        return add_bounds(file, at, whole[Json::json_pointer(schema["$ref"].get<std::string>().substr(1))],
                          whole, changes);
    const Json& here = file[at];
    const Json known = schema.value("properties", Json::object());
    for (const auto& [key, property] : known.items()) {
        if (!here.is_object()) break;
        for (const Json& value : values_by(property)) {
            changes.push_back(
                {(at / key).to_string() + (here.contains(key) ? " = " : " more = ") + value.dump(), file});
            changes.back().changed[at][key] = value;
        }
    }
    if (here.is_object())
        for (const auto& item : here.items())
            if (const Json inner = known.value(item.key(), schema.value("additionalProperties", Json()));
                inner.is_object())
                add_bounds(file, at / item.key(), inner, whole, changes);
    if (here.is_array() && schema.contains("items"))
        for (std::size_t i = 0; i < std::min<std::size_t>(here.size(), 2); ++i)
            add_bounds(file, at / i, schema["items"], whole, changes);
}

}  // namespace

TEST_CASE("readers and schemas accept the same files") {
    const TemporaryFolder folder;
    const std::string swept =
        "(/scenarios)?(/(axes|zipped|points|where)(/.*)? (less|of another type)|/base(/topology|/schedule)? less|"
        "/base/workload.*|/base/.* = .*)|/variants/.* less|/cases/.*/(status|reason)( more)? = .*";
    const std::vector<Kind> kinds{
        {"kernels",
         {source_folder / "configs/kernels.json"},
         [](const fs::path& file) { KernelTable().add(file); }},
        {"tiles",
         {source_folder / "configs/calibrations/recipes/tiles.json"},
         [](const fs::path& file) { TileLists read(file); },
         "/of_platform/.* = .*|/lists/.* less"},
        {"host", files_below("configs/hosts", 2), [](const fs::path& file) { shipped.host(file.string()); },
         "", "/description = .*"},
        // Values of parameters are read with the machine that they are for.
        {"schedule", files_below("configs/schedules", 4),
         [](const fs::path& file) { read_preset(read_config_file(file, "schedule")); },
         "/schedule = .*|/params/.* = .*", "/params/.* (of another type|= .*)"},
        {"sweep", files_below("configs/sweeps", 9), [](const fs::path& file) { DesignSpace(file, shipped); },
         swept},
        {"experiment", files_below("configs/experiments", 25),
         [](const fs::path& file) { read_experiment(file, shipped); }, swept},
        // Shipped files say what they are; those of Hugging Face have other keys besides. Sizes must go together. A size
        // that no layer uses is not read: the MLP's where all layers have experts.
        {"model", files_below("configs/models", 9),
         [](const fs::path& file) { named_model(file.string(), shipped); },
         "/[a-z_]+ less|/(hidden_size|model_type|n_embd|n_head[a-z_]*|num_[a-z_]+|multi_query_group_num)( more)? = .*",
         "/[A-Za-z0-9_]+ more.*|/intermediate_size (of another type|= .*)|/schema = .*|/(schema|name|description|source|hidden_act|activation_function) (less|of another type)"},
        // Without cases to judge, no claim has any.
        {"tolerances", files_below("configs/tolerances", 2),
         [](const fs::path& file) {
             const std::string refused = error_of([&] { judge({}, file); });
             if (!refused.ends_with("no case has these labels")) throw UserError(refused);
         }},
        // What a scenario may say depends on its topology and schedule, which comparing looks up.
        {"measured_case",
         {source_folder / "tests/samples/measured_case.1.json"},
         [](const fs::path& file) { read_measured_cases(std::vector{file.string()}); },
         "/scenario less|/makespan_us = .*",
         "/scenario/(topology|schedule) less|/scenario/(params|workload)/.*"}};
    for (const Kind& kind : kinds) {
        const Schema schema(kind.schema);
        const Json text = read_json_file(source_folder / "configs/schema" / (kind.schema + ".schema.json"));
        std::size_t refusals = 0;
        for (const fs::path& sample : kind.samples) {
            const Json file = read_json_file(sample);
            std::vector<Change> changes{{"as it is", file}};
            add_changes(file, Json::json_pointer(), changes);
            add_bounds(file, Json::json_pointer(), text, text, changes);
            for (const Change& change : changes) {
                const fs::path path = folder.path() / sample.filename();
                std::ofstream(path) << change.changed.dump();
                const std::string refused = error_of([&] { kind.read(path); });
                const std::string invalid =
                    schema.errors(nlohmann::json::parse(change.changed.dump()), "schema");
                refusals += !refused.empty();
                INFO(kind.schema << ' ' << sample.filename() << ' ' << change.what << ": reader: " << refused
                                 << "; " << invalid);
                if (refused.empty() != invalid.empty())
                    CHECK(std::regex_match(
                        change.what, std::regex(refused.empty() ? kind.only_schema : kind.only_reader)));
            }
        }
        INFO(kind.schema);
        CHECK(refusals > 10);
    }
}

}  // namespace overlap::test::schema_mutation_test
