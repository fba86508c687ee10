#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "models/calibration_schema.hpp"
#include "models/cost_model_registry.hpp"
#include "sim/collectives/collective_algorithm.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/file_formats.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/commands/words.hpp"
#include "sim/core/fields.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/engine/engine.hpp"
#include "sim/importers/trace_importer.hpp"
#include "sim/pricing/effects.hpp"
#include "sim/reproduce/published_experiment.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/topology/device_schema.hpp"
#include "sim/transformer/step_request.hpp"

namespace overlap {
namespace {

/// A named thing that `sim explain` can explain.
struct Item {
    std::string kind;  ///< heading of `sim list`
    std::string name;
    std::string summary;
};

std::string description_of(const ConfigFile& config) {
    ConfigObject file = config.view();
    return file.has("description") ? file.text("description") : "";
}

ConfigFile shipped_file(const ConfigFolder& folder, const std::string& kind, const std::string& name) {
    if (kind == "topologies") return folder.topology_file(name);
    const std::filesystem::path path = folder.find(kind, name);
    return {read_json_file(path), path.string()};
}

std::vector<Item> all_items(const ConfigFolder& folder) {
    std::vector<Item> items;
    const auto add_files = [&](const std::string& kind, const std::string& heading) {
        for (const std::string& name : folder.names(kind))
            items.push_back({heading, name, description_of(shipped_file(folder, kind, name))});
    };
    for (const ScheduleEntry& entry : schedules()) items.push_back({"schedules", entry.name, entry.summary});
    add_files("schedules", "schedules in use");
    for (const CollectiveAlgorithm& entry : collective_algorithms())
        items.push_back({"collective algorithms", entry.name, entry.summary});
    for (const CostModelEntry& entry : cost_models())
        items.push_back({"cost models", entry.name, entry.summary});
    for (const EngineEntry& entry : engines()) items.push_back({"engines", entry.name, entry.summary});
    for (const char* kind : {"topologies", "devices", "workloads"}) add_files(kind, kind);
    for (const char* kind : {"hosts", "models", "sweeps"})  // not in older folders
        if (std::filesystem::is_directory(folder.folder(kind))) add_files(kind, kind);
    if (std::filesystem::is_directory(folder.experiments()))
        for (const std::string& system : folder.published_systems()) {
            const auto files = experiment_files(system, folder);
            items.push_back(
                {"experiments", system,
                 std::to_string(files.size()) + " files of published figures: sim reproduce " + system});
        }
    for (const TraceImporter& entry : trace_importers())
        items.push_back({"trace formats", entry.name, entry.description});
    return items;
}

std::string shortened(const std::string& text, std::size_t width) {
    if (text.size() <= width) return text;
    std::size_t end = width - 3;
    // Not inside a UTF-8 character
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    return text.substr(0, end) + "...";
}

/// "presets", "device" or "cost model" as `sim list` calls them.
std::string kind_named(const std::string& given) {
    static const std::map<std::string, std::string> others{
        {"presets", "schedules in use"}, {"collectives", "collective algorithms"},
        {"machines", "topologies"},      {"importers", "trace formats"},
        {"systems", "experiments"},      {"gpus", "devices"}};
    const std::vector<std::string> kinds = listed_kinds();
    const std::string name = lower_case(given);
    for (const std::string& one :
         {name, name + "s", name.ends_with('y') ? name.substr(0, name.size() - 1) + "ies" : name}) {
        if (contains(kinds, one)) return one;
        if (const std::string* kind = value_at(others, one)) return *kind;
    }
    throw UserError("list: " + in_quotes(given) + " is no kind" + suggestion(name, kinds));
}

void list(const std::string& given) {
    const std::string only = given.empty() ? "" : kind_named(given);
    std::ostringstream out;
    std::string heading;
    const std::size_t name_width = 32, width = terminal_columns().value_or(name_width + 100);
    const std::size_t room = std::max<std::size_t>(width, name_width + 30) - name_width;
    for (const Item& item : all_items(ConfigFolder::standard())) {
        if (!only.empty() && item.kind != only) continue;
        if (heading != item.kind) out << (heading.empty() ? "" : "\n") << (heading = item.kind) << ":\n";
        out << "  " << item.name << std::string(item.name.size() < 30 ? 30 - item.name.size() : 1, ' ')
            << shortened(item.summary, room) << '\n';
    }
    print_for_people(out.str());
}

void explain_parameter(std::ostream& out, const ParameterInfo& info, const std::string& by_default) {
    out << "  " << info.name << ": " << info.meaning << "\n      allowed: " << info.allowed
        << "; default: " << by_default << '\n';
}

void explain_schedule(std::ostream& out, const ScheduleEntry& entry) {
    out << "\nparameters (--set NAME=VALUE):\n";
    for (const ParameterInfo& info : schedule_parameters()) {
        if (!entry.takes(info.name)) continue;
        explain_parameter(
            out, info,
            entry.defaults.contains(info.name) ? entry.defaults[info.name].dump() : info.by_default);
    }
    out << "\nworkloads: ";
    std::string forms;
    for (const auto& [kind, order] : {std::pair(CollectiveKind::all_gather, Order::collective_first),
                                      std::pair(CollectiveKind::all_to_all, Order::collective_first),
                                      std::pair(CollectiveKind::reduce_scatter, Order::gemm_first),
                                      std::pair(CollectiveKind::all_reduce, Order::gemm_first),
                                      std::pair(CollectiveKind::all_to_all, Order::gemm_first),
                                      std::pair(CollectiveKind::all_gather, Order::gemm_first),
                                      std::pair(CollectiveKind::all_gather, Order::independent)}) {
        Workload workload;
        workload.content = Pair{kind, {}, order, ShardDim::m};
        if (entry.handles(workload)) forms += (forms.empty() ? "" : ", ") + workload.form();
    }
    Workload operators;
    operators.content = std::vector<Operator>();
    if (entry.handles(operators)) forms += ", operators";
    out << forms << '\n';
}

/// Every value of a config with its source and, once, what it means.
struct ConfigExplainer {
    std::ostream& out;
    std::string file;
    const Json& root;
    std::set<std::string> said = {};

    void explain(const Json& json, const std::string& pointer, const Json& schema) {
        const bool sourced = json.is_object() && json.contains("value") && json.contains("source");
        const bool list = json.is_array() && (json.empty() || !json[0].is_object());
        if (json.is_structured() && !sourced && !list) {
            for (const auto& item : json.items())
                if (item.key() != "provenance")
                    explain(item.value(), pointer + "/" + item.key(),
                            member_schema(root, schema, json, item.key()));
            return;
        }
        for (const char* shown : {"/schema", "/name", "/description", "/device"})
            if (pointer == shown) return;
        out << "  " << pointer << " = " << (sourced ? json["value"] : json).dump() << '\n';
        if (schema.contains("description") && said.insert(schema["description"].dump()).second)
            out << "      " << schema["description"].get<std::string>() << '\n';
        if (sourced) out << "      source: " << ConfigObject(json, file, pointer).text("source") << '\n';
    }
};

void explain_file(std::ostream& out, const ConfigFile& file, const Json& schema) {
    out << "\nvalues and sources (" << file.name << "):\n";
    file.view();  // is an object
    ConfigExplainer{out, file.name, schema}.explain(file.json, "", schema);
}

/// What is read of a model: numbers of weights, and layers of each kind.
void explain_model(std::ostream& out, const Model& model) {
    out << "parameters " << parameters(model);
    if (model.has_experts()) out << ", for a token " << active_parameters(model);
    out << '\n';
    for (const LayerKind& kind : layer_kinds(model))
        out << kind.count << " x " << kind.name << ", parameters of each "
            << layer_parameters(model, kind.shape) << '\n';
    for (const std::string& note : model.notes) out << "note: " << note << '\n';
}

/// A file of the user of any format of ours, or a model's config.json. False if there is no such file.
bool explain_users_file(std::ostream& out, const ConfigFolder& folder, const std::string& given) {
    const auto is_file = [](const std::string& path) {
        return std::filesystem::exists(path) && !std::filesystem::is_directory(path);
    };
    const std::string path = is_file(given) ? given : given + ".json";
    if (!is_file(path)) return false;
    const Json json = read_model_file(path);
    if (!json.is_object()) throw UserError(path + ": is " + shown(json) + ", expected an object");
    const FileFormat& format = format_of(json, path);
    out << path << " (" << format.kind << ")\n" << json.value("description", "") << '\n';
    if (format.kind == "model")
        explain_model(out, read_model(ConfigObject(json, path), path, families_of(folder)));
    // Says what is wrong with it.
    if (format.kind == "workload") read_workload(ConfigObject(json, path));
    if (format.kind == "topology") folder.topology(path);
    if (format.kind == "device") folder.device(path);
    if (format.kind == "host") folder.host(path);
    if (format.kind == "schedule") folder.schedule(path);
    explain_file(out, {json, path}, format.schema());
    return true;
}

/// Descriptions of a key in the files of any format, with the formats that have it.
using KeyDocs = std::map<std::string, std::vector<std::string>>;

void find_key(const Json& schema, const std::string& key, const std::string& kind, KeyDocs& docs) {
    if (!schema.is_structured()) return;
    if (schema.is_object() && schema.contains("properties") && schema["properties"].contains(key)) {
        const Json& found = schema["properties"][key];
        auto& kinds = docs[found.is_object() ? found.value("description", "") : ""];
        if (kinds.empty() || kinds.back() != kind) kinds.push_back(kind);
    }
    for (const auto& item : schema.items()) find_key(item.value(), key, kind, docs);
}

/// A key of our files or outputs, as its last part: "engine_GBps" of "device.dma.engine_GBps" or "/dma/engine_GBps".
void explain_key(std::ostream& out, const std::string& name) {
    const std::string key = name.substr(name.find_last_of("./") + 1);
    KeyDocs docs;
    for (const FileFormat& format : file_formats()) find_key(format.schema(), key, format.kind, docs);
    docs.erase("");
    for (const auto& [doc, kinds] : docs) out << key << " (key of: " << joined(kinds) << ")\n" << doc << '\n';
}

void explain(const std::string& name) {
    const ConfigFolder folder = ConfigFolder::standard();
    const std::string stem = name.ends_with(".json") ? name.substr(0, name.size() - 5) : name;
    std::ostringstream out;
    std::vector<std::string> names;
    std::vector<Item> items = all_items(folder);
    if (std::ranges::find(items, stem, &Item::name) == items.end())
        if (const std::optional<Json> cluster = folder.clusters().topology(stem))
            items.push_back({"topologies", stem, cluster->at("description")});
    for (const Item& item : items) {
        names.push_back(item.name);
        if (item.name != stem) continue;
        out << (out.str().empty() ? "" : "\n") << item.name << " (" << item.kind << ")\n"
            << item.summary << '\n';
        if (item.kind.starts_with("schedules")) explain_schedule(out, *folder.schedule(stem));
        const auto explain_as = [&](const Json& schema, const std::string& kind) {
            explain_file(out, shipped_file(folder, kind, stem), schema);
        };
        if (item.kind == "topologies") explain_as(topology_schema(), item.kind);
        if (item.kind == "devices") explain_as(device_schema(), item.kind);
        if (item.kind == "workloads") explain_as(workload_schema(false), item.kind);
        if (item.kind == "hosts") explain_as(host_schema(), item.kind);
        if (item.kind == "sweeps") explain_as(sweep_schema(), item.kind);
        if (item.kind == "experiments")
            for (const auto& file : experiment_files(stem, folder))
                out << "\n"
                    << file.string() << '\n'
                    << description_of({read_json_file(file), file.string()}) << '\n';
        if (item.kind == "models") {
            explain_model(out, named_model(stem, folder));
            explain_as(model_schema(families_of(folder)), item.kind);
        }
        if (item.kind == "devices" && contains(folder.names("calibrations"), stem))
            explain_as(calibration_schema(), "calibrations");
    }
    for (const ParameterInfo& info : schedule_parameters()) {
        names.push_back(info.name);
        if (info.name != stem) continue;
        out << (out.str().empty() ? "" : "\n") << "parameter of schedules (--set NAME=VALUE)\n";
        explain_parameter(out, info, info.by_default);
    }
    const std::vector<Word> words = documented_words();
    const std::vector<std::string> parts = parts_of_name(name, words);
    for (const Word& word : words) {
        names.insert(names.end(), word.names.begin(), word.names.end());
        if (std::ranges::none_of(parts, [&](const std::string& part) { return word.is(part); })) continue;
        out << (out.str().empty() ? "" : "\n") << joined(word.names) << " (" << word.kind << ")\n"
            << word.meaning << '\n';
    }
    if (out.str().empty()) explain_key(out, name);
    if (out.str().empty() && !explain_users_file(out, folder, name)) {
        throw UserError("explain: " + in_quotes(name) + " is not known" + suggestion(stem, names) +
                        "; see sim list");
    }
    print_for_people(out.str());
}

}  // namespace

std::vector<std::string> listed_kinds() {
    std::vector<std::string> kinds;
    for (const Item& item : all_items(ConfigFolder::standard()))
        if (kinds.empty() || kinds.back() != item.kind) kinds.push_back(item.kind);
    return kinds;
}

std::vector<std::string> listed_names(const std::string& kind) {
    std::vector<std::string> names;
    for (const Item& item : all_items(ConfigFolder::standard()))
        if (kind.empty() || item.kind == kind) names.push_back(item.name);
    return names;
}

void add_list_commands(CLI::App& app) {
    CLI::App* listing =
        app.add_subcommand("list", "All schedules, cost models, topologies, workloads ... by name");
    auto kind = std::make_shared<std::vector<std::string>>();
    listing->add_option("kind", *kind, "Only this kind: schedules, devices, sweeps, cost models ...");
    listing->callback([kind] { list(joined(*kind, " ")); });

    CLI::App* explaining = app.add_subcommand(
        "explain", "Definition, parameters, values and sources of a name, or of a word of the output");
    auto words = std::make_shared<std::vector<std::string>>();
    explaining
        ->add_option(
            "name", *words,
            "A name from sim list, a parameter, a word of the output (exposed communication), a key (device.dma.engine_GBps), or a file: a topology, a device, a workload, a model's config.json ...")
        ->required();
    explaining->callback([words] { explain(joined(*words, " ")); });
}

}  // namespace overlap
