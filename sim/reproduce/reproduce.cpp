#include "sim/reproduce/reproduce.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "sim/core/file_kind.hpp"
#include "sim/core/formula.hpp"
#include "sim/core/ranges.hpp"
#include "sim/report/run/report.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

/// Names of a result's numbers; "losses_us.contention" for a number inside an object.
std::vector<std::string> result_fields() {
    std::vector<std::string> fields;
    const Json result = to_json(RunResult());
    for (const auto& [key, value] : result.items()) {
        if (value.is_object())
            for (const auto& [inner, number] : value.items())
                if (number.is_number()) fields.push_back(key + "." + inner);
        if (value.is_number() || key == "overlap_efficiency") fields.push_back(key);
    }
    return fields;
}

/// Prefix of a parameter's name among the fields of a result.
constexpr std::string_view parameter_prefix = "params.";

const Json& at_path(const Json& result, const std::string& field) {
    std::string path = (field.starts_with(parameter_prefix) ? "/config/" : "/") + field;
    std::ranges::replace(path, '.', '/');
    return result.at(Json::json_pointer(path));
}

RunConfig variant_config(const PublishedExperiment& experiment, const DesignPoint& scenario,
                         const std::string& variant, const ConfigFolder& folder, const Json& what_if) {
    Json config = experiment.scenarios.run_config(scenario.values);
    set_fields(config, experiment.variants.at(variant), [&](const std::string& name) {
        const ConfigFile file = read_config_file(folder.find("workloads", name), "workload");
        require_kind(file.json, file.name, FileKind::workload);
        file.view();  // an object
        return file.json;
    });
    if (!what_if.empty()) config["what_if"].update(what_if);
    return read_run_config(config, experiment.file + ": /variants/" + variant);
}

std::vector<DesignPoint> scenarios_of(const DesignSpace& space) {
    std::vector<DesignPoint> points;
    for (std::uint64_t number = 0; number < space.size(); ++number)
        if (std::optional<DesignPoint> point = space.point(number)) points.push_back(std::move(*point));
    return points;
}

/// Numbers that only some results have: parameters of the schedule, and energy.
std::vector<std::string> further_numbers(const Json& result) {
    std::vector<std::string> fields;
    if (const Json& energy = result.at("energy_J"); energy.is_object())
        for (const auto& [name, value] : energy.items()) fields.push_back("energy_J." + name);
    for (const auto& [name, value] : result.at("config").at("params").items())
        if (value.is_number()) fields.push_back(std::string(parameter_prefix) + name);
    return fields;
}

void keep_common(std::vector<std::string>& names, const std::vector<std::string>& others) {
    std::erase_if(names, [&](const std::string& name) { return !contains(others, name); });
}

/// The values known for `prefix`.
std::vector<std::string> fields_of(const Json& known, const std::string& prefix) {
    std::vector<std::string> fields;
    for (const auto& [name, value] : known.items())
        if (name.starts_with(prefix)) fields.push_back(name.substr(prefix.size()));
    return fields;
}

/// For each scenario, adds the fields that all `members` have, taken from the member with the smallest
/// makespan, under another name.
void name_fastest(const std::string& name, const std::vector<std::string>& members,
                  std::vector<Json>& scenarios) {
    std::vector<std::string> fields = fields_of(scenarios.front(), members.front() + ".");
    for (const std::string& member : members) keep_common(fields, fields_of(scenarios.front(), member + "."));
    for (Json& known : scenarios) {
        const auto makespan = [&](const std::string& member) {
            return known.at(member + ".makespan_us").get<double>();
        };
        const std::string& best = *std::ranges::min_element(members, {}, makespan);
        for (const std::string& field : fields) {
            const Json value = known.at(best + "." + field);
            known[name + "." + field] = value;
        }
    }
}

/// Every scenario with every variant.
struct VariantRuns {
    std::vector<DesignPoint> scenarios;
    std::vector<std::string> variants;
    std::vector<Json> results;         ///< by scenario, then variant
    std::vector<std::string> devices;  ///< of these

    std::size_t at(std::size_t scenario, std::size_t variant) const {
        return scenario * variants.size() + variant;
    }
};

VariantRuns run_all(const PublishedExperiment& experiment, const ConfigFolder& folder, const Json& what_if) {
    VariantRuns runs{scenarios_of(experiment.scenarios), keys_of(experiment.variants), {}, {}};
    runs.results.resize(runs.scenarios.size() * runs.variants.size());
    runs.devices.resize(runs.results.size());
    Resolver resolver(folder, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
    Baselines baselines;
    tbb::parallel_for(std::size_t{0}, runs.results.size(), [&](std::size_t i) {
        const RunConfig config = variant_config(experiment, runs.scenarios[i / runs.variants.size()],
                                                runs.variants[i % runs.variants.size()], folder, what_if);
        const Scenario scenario = resolver.resolve(config);
        runs.devices[i] = scenario.machine->topology.device().name;
        runs.results[i] = to_json(run(scenario, {false, &baselines}));
    });
    return runs;
}

/// Makes one number of every run of a variant larger or smaller by the bound that nine of ten runs keep. Of the other
/// numbers only makespans, and those that `text` names, are of use.
struct Disturbance {
    std::size_t variant = 0;
    std::string field;
    int sign = 1;
    std::string text = {};

    bool wants(const std::string& name) const {
        return name == "makespan_us" || text.find(name) != std::string::npos;
    }
};

double p90_of(const Json& result) {
    const Json& p90 = result.at("confidence").at("p90_error_pct");
    return p90.is_null() ? 0 : p90.get<double>() / 100;
}

/// The confidence of that run of a variant whose bound is the widest.
const Json& least_certain(const VariantRuns& runs, std::size_t variant) {
    std::size_t widest = variant;
    for (std::size_t scenario = 1; scenario < runs.scenarios.size(); ++scenario)
        if (p90_of(runs.results[runs.at(scenario, variant)]) > p90_of(runs.results[widest]))
            widest = runs.at(scenario, variant);
    return runs.results[widest].at("confidence");
}

/// For each scenario, the values that expressions may use.
std::vector<Json> values_of(const PublishedExperiment& experiment, const VariantRuns& runs,
                            const Disturbance* disturbance = nullptr) {
    static const std::vector<std::string> fields = result_fields();
    std::vector<Json> values;
    for (const DesignPoint& scenario : runs.scenarios) {
        Json& known = values.emplace_back(Json::object());
        for (const std::string& field : experiment.scenarios.fields())
            known[field] = scenario.values.value(field, Json(0));
    }
    for (std::size_t variant = 0; variant < runs.variants.size(); ++variant) {
        std::vector<std::string> all_have = further_numbers(runs.results[variant]);
        for (std::size_t scenario = 1; scenario < runs.scenarios.size(); ++scenario)
            keep_common(all_have, further_numbers(runs.results[runs.at(scenario, variant)]));
        for (const std::vector<std::string>& some : {fields, all_have})
            for (const std::string& field : some) {
                if (disturbance != nullptr && !disturbance->wants(field)) continue;
                for (std::size_t scenario = 0; scenario < runs.scenarios.size(); ++scenario) {
                    const Json& result = runs.results[runs.at(scenario, variant)];
                    Json& value = values[scenario][runs.variants[variant] + "." + field] =
                        at_path(result, field);
                    if (disturbance != nullptr && disturbance->variant == variant &&
                        disturbance->field == field && value.is_number())
                        value = value.get<double>() * std::exp(disturbance->sign * p90_of(result));
                }
            }
    }
    for (const auto& [name, members] : experiment.fastest_of) name_fastest(name, members, values);
    return values;
}

double aggregate(std::vector<double> values, Aggregate how) {
    std::ranges::sort(values);
    if (how == Aggregate::only || how == Aggregate::min) return values.front();
    if (how == Aggregate::max) return values.back();
    if (how == Aggregate::median) return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
    if (how == Aggregate::count)
        return static_cast<double>(std::ranges::count_if(values, [](double value) { return value != 0; }));
    if (how == Aggregate::geomean)
        for (double& value : values) value = std::log(value);
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    if (how == Aggregate::sum) return sum;
    const double mean = sum / static_cast<double>(values.size());
    return how == Aggregate::geomean ? std::exp(mean) : mean;
}

/// The number, and how many scenarios it is of. `origin`: file and place of `one`.
std::pair<double, std::size_t> evaluate(const PublishedNumber& one, const std::string& origin,
                                        const std::vector<Json>& scenarios) {
    const std::vector<std::string> names = keys_of(scenarios.front().get_ref<const Json::object_t&>());
    const Formula where(one.where.empty() ? "true" : one.where, names, origin + "/where");
    const Formula value(one.value, names, origin + "/value");
    std::vector<double> values;
    for (const Json& scenario : scenarios)
        if (where.holds(scenario)) values.push_back(value.number(scenario));
    if (values.empty()) throw UserError(origin + "/where: is '" + one.where + "': holds for no scenario");
    if (one.over == Aggregate::only && values.size() != 1)
        throw UserError(origin + "/over: is 'only', but " + std::to_string(values.size()) +
                        " scenarios are meant");
    return {aggregate(values, one.over), values.size()};
}

/// Times and speed-ups of a variant, or of what is named after the fastest of several, in an expression.
std::vector<std::string> uncertain_fields(const PublishedExperiment& experiment,
                                          const PublishedNumber& number, const std::string& variant) {
    std::vector<std::string> names{variant};
    for (const auto& [name, members] : experiment.fastest_of)
        if (contains(members, variant)) names.push_back(name);
    std::vector<std::string> found;
    for (const std::string& field : result_fields()) {
        if (!field.ends_with("_us") && !field.starts_with("losses_us.") && field != "speedup") continue;
        const bool used = std::ranges::any_of(names, [&](const std::string& name) {
            return (number.value + " ").find(name + "." + field) != std::string::npos;
        });
        if (used) found.push_back(field);
    }
    return found;
}

/// Adds interval, causes and kind: errors of runs and of their numbers count as independent.
void judge(const PublishedExperiment& experiment, const std::string& origin, const VariantRuns& runs,
           ReproducedCase& one) {
    double below = 0, above = 0, largest = 0;
    for (std::size_t variant = 0; variant < runs.variants.size(); ++variant) {
        for (const std::string& field : uncertain_fields(experiment, one, runs.variants[variant])) {
            double moved = 0;
            for (const int sign : {-1, 1}) {
                const Disturbance disturbance{variant, field, sign, one.value + one.where};
                const double change =
                    evaluate(one, origin, values_of(experiment, runs, &disturbance)).first - one.predicted;
                (change < 0 ? below : above) = std::hypot(change < 0 ? below : above, change);
                moved = std::max(moved, std::abs(change));
            }
            if (moved == 0 || one.predicted == 0) continue;
            const Json& sure = least_certain(runs, variant);
            if (moved > largest) {
                largest = moved;
                one.device = runs.devices[variant];
                one.run_kind = sure.at("kind").get<std::string>();
            }
            const double error = sure.at("makespan_error_pct").get<double>();
            Json causes = sure.at("causes");
            if (causes.empty()) causes.push_back({{"name", "measured schedules"}, {"error_pct", error}});
            for (const Json& cause : causes) {
                double& sum = one.causes[cause.at("name").get<std::string>()];
                sum = std::hypot(
                    sum, moved / std::abs(one.predicted) * cause.at("error_pct").get<double>() / error);
            }
        }
    }
    if (below > 0 || above > 0) one.p90 = Range{one.predicted - below, one.predicted + above};
}

}  // namespace

ReproducedExperiment reproduce(const PublishedExperiment& experiment, const ConfigFolder& folder,
                               const Json& what_if) {
    const VariantRuns runs = run_all(experiment, folder, what_if);
    const std::vector<Json> scenarios = values_of(experiment, runs);
    ReproducedExperiment result{
        experiment.system, experiment.name, experiment.description, experiment.source, {}, {}};
    const auto place = [&](const char* list, std::size_t number) {
        return experiment.file + ": /" + list + "/" + std::to_string(number);
    };
    for (std::size_t number = 0; number < experiment.cases.size(); ++number) {
        const PublishedCase& one = experiment.cases[number];
        const auto [predicted, count] = evaluate(one, place("cases", number), scenarios);
        judge(experiment, place("cases", number), runs,
              result.cases.emplace_back(ReproducedCase{one, predicted, count}));
    }
    for (std::size_t number = 0; number < experiment.conclusions.size(); ++number) {
        const PublishedConclusion& one = experiment.conclusions[number];
        const bool holds = one.state != ConclusionState::not_expressible &&
                           evaluate(one, place("conclusions", number), scenarios).first > 0;
        result.conclusions.push_back({one, holds});
    }
    return result;
}

bool ReproducedExperiment::as_stated() const {
    return std::ranges::all_of(cases, &ReproducedCase::as_stated) &&
           std::ranges::all_of(conclusions, &ReproducedConclusion::as_stated);
}

}  // namespace overlap
