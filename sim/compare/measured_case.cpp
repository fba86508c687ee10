#include "sim/compare/measured_case.hpp"

#include <glob.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/core/file_kind.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/input_file.hpp"
#include "sim/core/median.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/timeline_json.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

std::vector<Seconds> read_samples(ConfigObject& object) {
    std::vector<Seconds> samples = mapped(object.numbers("samples_us", positive), microseconds);
    if (samples.empty()) object.fail("samples_us", "is empty, expected makespans in us");
    return samples;
}

/// Samples of one run at the top level, or of several runs under "runs"; a
/// published figure has only a makespan.
std::vector<MeasuredRun> read_runs(ConfigObject& object, const std::string& date) {
    std::vector<MeasuredRun> runs;
    if (object.has("runs")) {
        for (ConfigObject& run : object.objects("runs")) {
            runs.push_back({run.has("date") ? run.text("date") : date, read_samples(run)});
            run.finish();
        }
        if (runs.empty()) object.fail("runs", "is empty, expected one run or more");
    } else if (object.has("samples_us")) {
        runs.push_back({date, read_samples(object)});
    } else {
        runs.push_back({date, {microseconds(object.number("makespan_us", positive))}});
    }
    return runs;
}

CaseTolerance read_tolerance(ConfigObject& object) {
    const std::array<std::string, 2> states{"enforced", "known_gap"};
    CaseTolerance tolerance;
    tolerance.error = object.number("error_pct", positive) / 100;
    tolerance.known_gap = object.choice("status", states) == 1;
    if (tolerance.known_gap || object.has("reason")) tolerance.reason = object.text("reason");
    object.finish();
    return tolerance;
}

MeasuredCase read_case(const Json& json, const std::string& origin) {
    ConfigObject object(json, origin);
    object.integer("schema", 1, 1);
    for (const auto& [key, only] : {std::pair("kind", "overlap"), {"unit", "us"}})
        if (object.has(key)) object.choice(key, std::array{std::string(only)});
    if (object.has("plan")) object.integer("plan", 1, 1'000'000'000);
    if (object.has("recorded_makespan_us")) object.number("recorded_makespan_us", positive);
    MeasuredCase result;
    result.origin = origin;
    result.system = object.text("system");
    if (object.has("source")) result.source = object.text("source");
    if (object.has("machine")) object.raw("machine");
    const std::string date = object.has("date") ? object.text("date") : "";
    ConfigObject(object.raw("scenario"), origin, "/scenario");  // an object, before it is read as one
    result.config = read_run_config(object.raw("scenario"), origin + ": /scenario");
    result.runs = read_runs(object, date);
    if (object.has("spans")) result.timeline = read_spans(object);
    if (object.has("tolerance")) {
        ConfigObject tolerance = object.object("tolerance");
        result.tolerance = read_tolerance(tolerance);
    }
    if (object.has("makespan_us")) {
        const double stated = object.number("makespan_us", positive);
        const double median = to_microseconds(result.makespan());
        if (std::abs(stated / median - 1) > 1e-3)
            object.fail("makespan_us", "is " + Json(stated).dump() + ", but the median of the samples is " +
                                           Json(median).dump());
    }
    object.finish();
    return result;
}

/// Cases in the order of their first occurrence; a repeated scenario of a system adds runs to its case.
class Pool {
public:
    void add(MeasuredCase one) {
        const RunConfig& ran = one.config;
        const Json key_of_run{one.system,   ran.topology, ran.schedule,  ran.params,
                              ran.workload, ran.host,     ran.schedules, static_cast<int>(ran.repeat)};
        const std::string key = key_of_run.dump();
        const auto [found, is_new] = places_.emplace(key, cases_.size());
        if (is_new) return cases_.push_back(std::move(one));
        MeasuredCase& known = cases_[found->second];
        if (one.tolerance || known.tolerance)
            throw UserError(one.origin + ": /scenario: is measured in " + known.origin +
                            ", too; with a tolerance only one of them is allowed");
        known.runs.insert(known.runs.end(), one.runs.begin(), one.runs.end());
        if (!known.timeline) known.timeline = std::move(one.timeline);
    }
    std::vector<MeasuredCase> take() { return std::move(cases_); }

private:
    std::vector<MeasuredCase> cases_;
    std::map<std::string, std::size_t> places_;
};

/// Lines of replay without a measurement: facts of the machine, and cases that failed.
bool is_no_case(const Json& line) {
    return line.is_object() && ((line.contains("kind") && line["kind"] == "machine") ||
                                line.contains("skipped") || line.contains("error"));
}

void read_file(const fs::path& path, Pool& cases) {
    if (path.extension() != ".jsonl") {
        const Json json = upgraded(read_json_file(path), "measured_case", path.string());
        require_kind(json, path.string(), FileKind::measured_case);
        return cases.add(read_case(json, path.string()));
    }
    std::ifstream in = open_input(path, "a file of measured cases");
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        const std::string origin = path.string() + ":" + std::to_string(number);
        const Json json = upgraded(parse_json(line, origin), "measured_case", origin);
        if (!is_no_case(json)) cases.add(read_case(json, origin));
    }
}

bool is_case_file(const fs::path& path) {
    return path.extension() == ".json" || path.extension() == ".jsonl";
}

std::vector<fs::path> files_of(const std::string& path) {
    std::vector<fs::path> files;
    if (fs::is_directory(path)) {
        for (const auto& entry : fs::recursive_directory_iterator(path))
            if (entry.is_regular_file() && is_case_file(entry.path())) files.push_back(entry.path());
        if (files.empty()) throw UserError(path + ": has no .json or .jsonl file in it");
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
    for (const MeasuredRun& run : runs) all.insert(all.end(), run.samples.begin(), run.samples.end());
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
    std::vector<MeasuredCase> cases = pool.take();
    if (cases.empty()) throw UserError(paths.front() + ": has no measured case in it");
    return cases;
}

}  // namespace overlap
