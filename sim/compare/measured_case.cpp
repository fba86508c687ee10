#include "sim/compare/measured_case.hpp"

#include <glob.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>

#include "sim/core/archive.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/input_keys.hpp"
#include "sim/core/median.hpp"
#include "sim/core/notices.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/timeline_json.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

/// What a file says of one case.
struct CaseText : MeasuredCase {
    std::string date;
    std::vector<Seconds> samples;
    Json scenario;
    Seconds stated;  ///< the file's makespan_us; 0 if it has none
};

// clang-format off
InputKeys<CaseTolerance> case_tolerance_keys() {
    using C = CaseTolerance;
    static const std::vector<InputKey<C>> keys{
        {"error_pct", {{"description", "Largest |predicted / measured - 1|, %."}, {"type", "number"}, {"exclusiveMinimum", 0}},
            [](ConfigObject& from, const std::string& key, C& to) { to.error = from.number(key, positive) / 100; }},
        plain_field<&C::known_gap>("status", gap_states, "known_gap: the error is larger."),
        text_key<C>("reason", &C::reason, "Why there is a gap.").only_of_gap()};
    return keys;
}

/// Samples of a case, or of one of its runs.
template <class T>
InputKey<T> samples_key(std::vector<Seconds> T::*member) {
    return {"samples_us", {{"$ref", "#/definitions/samples"}}, [=](ConfigObject& from, const std::string& key, T& to) {
        to.*member = mapped(from.numbers(key, positive), microseconds);
        if ((to.*member).empty()) from.fail(key, "is empty, expected makespans in us");
    }};
}

InputKeys<CaseText> case_file_keys() {
    using C = CaseText;
    static const std::array<std::string, 1> overlaps{"overlap"}, us{"us"};
    static const std::vector<InputKey<MeasuredRun>> run_keys{
        text_key<MeasuredRun>("date", &MeasuredRun::date, "ISO date or time.").optional(), samples_key(&MeasuredRun::samples)};
    const auto word = [](const std::string& key, std::span<const std::string> only, const std::string& doc) {
        return InputKey<C>(key, choice_of(only, doc), [=](ConfigObject& from, const std::string& name, C&) { from.choice(name, only); }).optional();
    };
    const auto ends = [](const std::string& key, const std::string& doc) {
        const Json numbers{{"type", "array"}, {"items", {{"type", "number"}}}};
        return InputKey<C>(key, {{"description", doc}, {"type", "array"}, {"items", numbers}}, [](ConfigObject& from, const std::string& name, C&) {
            if (!from.raw(name).is_array()) from.fail(name, "is no list");
        }).optional();
    };
    const Json run = run_schema();
    Json scenario = object_schema("What ran, as a run config (run.schema.json); sim compare needs it. Without a host it is replay.");
    for (const char* key : {"required", "properties", "anyOf"}) scenario[key] = run[key];
    static const std::vector<InputKey<C>> keys{
        version_key<C>("measured_case"), word("kind", overlaps, "Of the line, in results of replay."), word("unit", us, "Of all times."),
        Field<C>::checked("plan", "Its number in the plans that replay ran.").whole().plain_in({1, 1e9}).or_else("none"),
        Field<C>::checked("recorded_makespan_us", "Makespan of the run that recorded the spans.").plain_in(positive).or_else("not known"),
        text_key<C>("system", &C::system, "Machine, as traces/ names it."),
        text_key<C>("source", "Where it was measured or published.").optional(),
        InputKey<C>("machine", {{"description", "Facts of the machine: device, driver, libraries."}, {"type", "object"}}, [](ConfigObject& from, const std::string& key, C&) { from.object(key); }).optional(),
        text_key<C>("date", &C::date, "ISO date or time of the measurement.").optional(),
        object_key<C>("scenario", &C::scenario, scenario).optional(),
        list_key<C>("runs", &C::runs, "Runs of the measuring program, each with its samples.", run_keys).optional(),
        samples_key(&C::samples).optional(),
        field<&C::stated>("makespan_us", "Median of all samples.").plain_in(positive).or_else("that median"),
        ends("ends_us", "Of a plan with marks: ends of its tasks, in each execution."), ends("stream_ends_us", "Ends of its streams, in each execution."),
        InputKey<C>("spans", spans_schema(), [](ConfigObject& from, const std::string&, C& to) { to.timeline = read_spans(from); }).optional(),
        InputKey<C>("tolerance", keys_schema("What is claimed of the prediction of this case.", case_tolerance_keys()), [](ConfigObject& from, const std::string& key, C& to) {
            ConfigObject claim = from.object(key);
            to.tolerance = read_keys<CaseTolerance>(claim, case_tolerance_keys());
        }).optional()};
    return keys;
}
// clang-format on

/// Whether the workload is a list of a trace, which has what its own host did.
bool records_host(const Json& workload) {
    if (!workload.is_object() || !workload.contains("operators")) return false;
    return std::ranges::any_of(workload.at("operators"), [](const Json& op) {
        return op.contains("gap_us") || op.contains("host_us");
    });
}

/// Samples of several runs under "runs", or of one at the top level; a published figure has only a makespan.
MeasuredCase read_case(const Json& json, const std::string& origin) {
    ConfigObject object(json, origin);
    CaseText one = read_keys<CaseText>(object, case_file_keys());
    one.origin = origin;
    if (one.scenario.is_null())
        object.fail(
            "scenario",
            "is missing: sim import recognised no run that it knows a machine for; give it --topology, or "
            "--scenario FILE with the run config, or take its --out-workload LIST.json: sim --workload LIST.json "
            "--schedule concurrent --topology T");
    one.config = read_run_config(one.scenario, origin + ": /scenario");
    if (Json& plan = one.config.plan; plan.is_string()) {  // a file here, or beside the case's
        const fs::path here = plan.get<std::string>(), beside = fs::path(origin).parent_path() / here;
        std::error_code ignored;
        if (!fs::exists(here, ignored) && fs::exists(beside, ignored)) plan = beside.string();
    }
    if (one.config.host.empty() && !one.config.has_plan() && !records_host(one.config.workload))
        one.config.host = recorded_host;
    // Programs ran what was measured.
    if (Json& workload = one.config.workload;
        workload.is_object() && workload.contains("operators") && !workload.contains("order"))
        workload["order"] = list_order_names[static_cast<std::size_t>(ListOrder::program)];
    if (!one.runs.empty() && !one.samples.empty()) object.fail("samples_us", "stands beside runs");
    if (one.runs.empty()) {
        if (one.samples.empty()) one.samples = {microseconds(object.number("makespan_us", positive))};
        one.runs = {{one.date, one.samples}};
    }
    for (MeasuredRun& run : one.runs)
        if (run.date.empty()) run.date = one.date;
    if (one.stated > Seconds() && std::abs(one.stated / one.makespan() - 1) > 1e-3)
        object.fail("makespan_us", "is " + object.raw("makespan_us").dump() +
                                       ", but the median of the samples is " +
                                       Json(to_microseconds(one.makespan())).dump());
    return one;
}

/// Cases in the order of their first occurrence; a repeated scenario of a system adds runs to its case.
struct Pool {
    std::vector<MeasuredCase> cases;
    std::map<std::string, std::size_t> places;

    void add(MeasuredCase one) {
        const RunConfig& ran = one.config;
        const Json key_of_run{one.system,   ran.topology, ran.schedule,  ran.params,
                              ran.workload, ran.host,     ran.schedules, static_cast<int>(ran.repeat),
                              ran.plan};
        const std::string key = key_of_run.dump();
        const auto [found, is_new] = places.emplace(key, cases.size());
        if (is_new) return cases.push_back(std::move(one));
        MeasuredCase& known = cases[found->second];
        if (one.tolerance || known.tolerance)
            throw UserError(one.origin + ": /scenario: is measured in " + known.origin +
                            ", too; with a tolerance only one of them is allowed");
        append(known.runs, one.runs);
        if (!known.timeline) known.timeline = std::move(one.timeline);
    }
};

/// Lines of replay without a measurement: facts of the machine, and cases that failed.
bool is_no_case(const Json& line) {
    return line.is_object() && ((line.contains("kind") && line["kind"] == "machine") ||
                                line.contains("skipped") || line.contains("error"));
}

std::optional<MeasuredOn> facts_of(const Json& line) {
    if (!line.contains("device") || !line["device"].is_string()) return std::nullopt;
    const auto number = [&](const char* key) {
        return line.contains(key) && line[key].is_number() ? line[key].get<double>() : 0.0;
    };
    return MeasuredOn{line["device"], number("compute_units"), number("memory_GiB")};
}

bool has_lines(const fs::path& path) {
    return path.extension() == ".jsonl" || path.string().ends_with(".jsonl.gz");
}

bool is_case_file(const fs::path& path) {
    return path.extension() == ".json" || has_lines(path);
}

/// A trace or table of another program would be "not valid JSON".
void require_cases(const fs::path& path) {
    if (is_case_file(path) || !path.has_extension() || path.extension() == ".gz") return;
    throw UserError(path.string() + ": is named " + path.extension().string() +
                    ", expected a measured case (.json, .jsonl or .jsonl.gz); of a trace, sim import " +
                    path.string() + " --out CASE.json makes one");
}

/// Whether a file whose name does not tell, such as a pipe, has one case a line: its first line is JSON by itself, and
/// there are more.
bool has_lines_inside(const fs::path& path) {
    if (path.has_extension()) return false;
    std::istringstream in(decompressed(path));
    std::string first, second;
    std::getline(in, first);
    return Json::accept(first) && std::getline(in, second) && !second.empty();
}

void read_file(const fs::path& path, Pool& cases) {
    require_cases(path);
    if (!has_lines(path) && !has_lines_inside(path)) {
        const Json json = upgraded(read_json_file(path), "measured_case", path.string());
        require_kind(json, path.string(), FileKind::measured_case);
        return cases.add(read_case(json, path.string()));
    }
    std::istringstream in(decompressed(path));
    std::size_t number = 0;
    std::optional<MeasuredOn> machine;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        const std::string origin = path.string() + ":" + std::to_string(number);
        const Json json = upgraded(parse_json(line, origin), "measured_case", origin);
        if (is_no_case(json)) {
            if (const auto facts = facts_of(json)) machine = facts;
            continue;
        }
        MeasuredCase one = read_case(json, origin);
        one.machine = machine;
        cases.add(std::move(one));
    }
}

/// Compressed lines that are no cases: measurements for fits lie beside cases.
bool is_of_measurements(const fs::path& path) {
    if (path.extension() != ".gz") return false;
    std::istringstream in(decompressed(path));
    for (std::string line; std::getline(in, line);) {
        const Json json = Json::parse(line, nullptr, false);
        if (json.is_object() && json.contains("system")) return false;
    }
    notice(path.string() + ": has no measured case, left out");
    return true;
}

std::vector<fs::path> files_of(const std::string& path) {
    std::vector<fs::path> files;
    if (fs::is_directory(path)) {
        for (const auto& entry : fs::recursive_directory_iterator(path))
            if (entry.is_regular_file() && is_case_file(entry.path()) && !is_of_measurements(entry.path()))
                files.push_back(entry.path());
        if (files.empty()) throw UserError(path + ": has no .json, .jsonl or .jsonl.gz file in it");
    } else if (fs::exists(path)) {
        files.push_back(path);
    } else {
        glob_t found{};
        if (glob(path.c_str(), 0, nullptr, &found) == 0)
            files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
        globfree(&found);
        if (files.empty()) throw UserError(path + ": no such file or folder");
    }
    std::ranges::sort(files);
    return files;
}

}  // namespace

Seconds MeasuredRun::median() const {
    return overlap::median(samples);
}

Seconds MeasuredCase::makespan() const {
    std::vector<Seconds> all;
    for (const MeasuredRun& run : runs) append(all, run.samples);
    return median(std::move(all));
}

double MeasuredCase::spread() const {
    double largest = 0;
    for (const MeasuredRun& run : runs) largest = std::max(largest, std::abs(run.median() / makespan() - 1));
    return largest;
}

std::vector<MeasuredCase> read_measured_cases(std::span<const std::string> paths) {
    Pool pool;
    for (const std::string& path : paths)
        for (const fs::path& file : files_of(path)) read_file(file, pool);
    if (pool.cases.empty()) throw UserError(paths.front() + ": has no measured case in it");
    return std::move(pool.cases);
}

void put_on_device(MeasuredCase& measured, const std::string& device, const fs::path& topologies) {
    const std::string stem = fs::path(measured.config.topology).stem().string();
    measured.system = device + stem.substr(std::min(stem.rfind('_'), stem.size()));
    measured.config.topology = (topologies / (measured.system + ".json")).string();
    measured.machine.reset();
}

Json measured_case_schema() {
    Json schema = file_of_keys(
        "Measured case",
        "One schedule as it ran on real GPUs, or a published figure: a file, or a line of JSON Lines. Makespans are "
        "from a common release of all GPUs to the end of the last, us.",
        case_file_keys());
    schema["anyOf"] = mapped(std::array{"runs", "samples_us", "makespan_us"}, [](const char* key) {
        return Json{{"required", {key}}};
    });
    schema["definitions"]["samples"] = {{"description", "Makespans, us."},
                                        {"type", "array"},
                                        {"minItems", 1},
                                        {"items", {{"type", "number"}, {"exclusiveMinimum", 0}}}};
    return schema;
}

}  // namespace overlap
