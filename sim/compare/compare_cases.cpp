#include "sim/compare/compare_cases.hpp"
#include "sim/core/driver_facts.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

#include <tbb/parallel_for.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace overlap {
namespace {

/// A task's end that is off by more than this fraction of the makespan is a divergence.
constexpr double divergence = 0.02;
constexpr double as_good_as_best = 0.02;

std::string size_class(Seconds makespan) {
    const double us = to_microseconds(makespan);
    return us < 200 ? "below 0.2 ms" : us < 1000 ? "0.2-1 ms" : us < 5000 ? "1-5 ms" : "from 5 ms";
}

std::string operator_of(const Workload& workload) {
    const Pair* pair = workload.pair();
    if (pair == nullptr) return "operators";
    const std::string collective = name_of(pair->collective);
    if (pair->order == Order::gemm_first) return "gemm > " + collective;
    return pair->order == Order::collective_first ? collective + " > gemm" : collective + " beside gemm";
}

/// Host and repetition: "cuda_graph, steady"; empty for replay's, one run that was enqueued beforehand.
std::string conditions_of(const Scenario& scenario) {
    const std::string& repeat = repeat_names[static_cast<std::size_t>(scenario.repeat)];
    if (scenario.host != nullptr) return scenario.host->name + ", " + repeat;
    return scenario.repeat == Repeat::once ? "" : repeat;
}

std::string scenario_of(const std::string& system, const Scenario& scenario) {
    const Pair* pair = scenario.workload.pair();
    const std::string& topology = scenario.machine->topology.name();
    std::string name = system + (topology == system ? ", " : " " + topology + ", ");
    if (pair == nullptr) {
        name += scenario.has_workload() ? scenario.workload.name : "plan " + scenario.plan->origin;
    } else {
        const GemmShape& gemm = pair->gemm;
        name += operator_of(scenario.workload) + ", " + shape_name(gemm) + " " + name_of(gemm.dtype);
    }
    if (const std::string conditions = conditions_of(scenario); !conditions.empty())
        name += ", " + conditions;
    return name;
}

/// Operator, schedule and conditions, where these are not replay's.
std::string run_of(const Scenario& scenario) {
    const std::string conditions = conditions_of(scenario);
    if (conditions.empty()) return "";
    return operator_of(scenario.workload) + ": " + scenario.schedule->name + ", " + conditions;
}

/// The schedule with its agent, and all parameters that differ from their defaults for that agent.
std::string name_of_variant(const Scenario& scenario, const Json& params) {
    if (scenario.plan != nullptr) return "plan " + scenario.plan->origin;
    const ScheduleEntry& schedule = *scenario.schedule;
    const Json agent = params.contains("agent") ? Json{{"agent", params["agent"]}} : Json::object();
    const Json defaults =
        to_json(schedule.read({agent, "defaults"}, scenario.workload, scenario.machine->topology),
                schedule.parameters);
    std::string name = schedule.name;
    for (const auto& [key, value] : params.items())
        if (key == "agent" || key == "chunks" || value != defaults[key])
            name += " " + key + "=" + unquoted(value);
    return name;
}

using SpanKey = std::pair<int, std::string>;  ///< GPU and name of the task

/// Spans by key, in order of their starts: the first measured span is matched with the first predicted one.
std::map<SpanKey, std::vector<const Span*>> by_key(const Timeline& timeline) {
    std::map<SpanKey, std::vector<const Span*>> result;
    for (const Span& span : timeline.spans()) result[{span.gpu, span.name}].push_back(&span);
    for (auto& [key, spans] : result) std::ranges::stable_sort(spans, {}, &Span::start);
    return result;
}

TaskErrors compare_tasks(const Timeline& measured, const Timeline& predicted) {
    TaskErrors result;
    const auto predicted_spans = by_key(predicted);
    const Seconds allowed = divergence * measured.end();
    std::size_t paired = 0;
    for (const auto& [key, spans] : by_key(measured)) {
        const auto* partners = value_at(predicted_spans, key);
        for (std::size_t i = 0; i < spans.size(); ++i) {
            if (partners == nullptr || i >= partners->size()) {
                ++result.only_measured;
                continue;
            }
            ++paired;
            const Span &seen = *spans[i], &expected = *(*partners)[i];
            const Seconds lasted = seen.lasted();
            if (lasted > Seconds())
                result.by_kind[task_kind_names[static_cast<std::size_t>(seen.kind)]].push_back(
                    expected.lasted() / lasted - 1);
            if (std::abs((expected.end - seen.end).si()) <= allowed.si()) continue;
            if (!result.first || seen.end < result.first->measured_end)
                result.first = {seen.name, seen.gpu, seen.start, seen.end, expected.start, expected.end};
        }
    }
    result.only_predicted = predicted.spans().size() - paired;
    return result;
}

/// Throws UserError if another device ran than that of the topology.
void require_same_device(const MeasuredCase& measured, const DeviceSpec& device) {
    if (!measured.machine) return;
    const MeasuredOn& ran = *measured.machine;
    const auto agree = [](double value, double known) { return value == 0 || is_same_fact(value, known); };
    if (agree(ran.compute_units, device.compute_units) &&
        agree(ran.memory_GiB * GB_of_GiB, device.hbm_capacity.si() * 1e-9))
        return;
    throw UserError(measured.origin + ": /scenario/topology: is " + in_quotes(measured.config.topology) +
                    " of " + device.name + ", but " + in_quotes(ran.device) + " with " +
                    shown(std::round(100 * ran.memory_GiB) / 100) +
                    " GiB ran; --device NAME says what it is predicted as");
}

ComparedCase compare_case(const MeasuredCase& measured, Resolver& resolver) {
    RunConfig config = resolver.with_machine(measured.config);
    if (config.host.empty() && config.has_plan() && !config.read->config.contains("host"))
        config.host = recorded_host;
    const Scenario scenario = resolver.resolve(config);
    require_same_device(measured, scenario.machine->topology.device());
    const Json params = to_json(scenario.params, scenario.schedule->parameters);
    Prediction predicted = predict(scenario, true);
    ComparedCase result;
    result.origin = measured.origin;
    result.scenario = scenario_of(measured.system, scenario);
    // A plan that does not say what work it does has no alternatives.
    const Json work = scenario.has_workload() ? to_json(scenario.workload) : scenario.plan->given;
    result.key = measured.system + scenario.machine->topology.name() + work.dump() + conditions_of(scenario);
    result.name = name_of_variant(scenario, params);
    result.measured = measured.makespan();
    result.runs.spread = measured.spread();
    result.runs.medians = mapped(measured.runs, &MeasuredRun::median);
    result.predicted = predicted.makespan;
    result.predicted_p10 = predicted.p10;
    result.predicted_p90 = predicted.p90;
    result.seeds = predicted.seeds;
    result.error = predicted.makespan / result.measured - 1;
    result.confidence = std::move(predicted.confidence);
    const auto param = [&](const char* key) { return params.contains(key) ? unquoted(params[key]) : "none"; };
    result.labels = {{"system", measured.system},
                     {"schedule", scenario.schedule->name},
                     {"agent", param("agent")},
                     {"transfer", param("transfer")},
                     {"operator", operator_of(scenario.workload)},
                     {"size", size_class(result.measured)},
                     {"run", run_of(scenario)}};
    result.tolerance = measured.tolerance;
    if (measured.timeline) {
        result.spans.errors = compare_tasks(*measured.timeline, predicted.timeline);
        result.spans.measured = *measured.timeline;
        result.spans.predicted = std::move(predicted.timeline);
    }
    return result;
}

/// Ranks from 0; equal values share the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::size_t at) { return values[at]; });
    std::vector<double> ranks(values.size());
    for (std::size_t first = 0; first < order.size();) {
        std::size_t last = first;
        while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
        for (std::size_t i = first; i <= last; ++i) ranks[order[i]] = 0.5 * static_cast<double>(first + last);
        first = last + 1;
    }
    return ranks;
}

/// Spearman's: Pearson's correlation of the ranks; none where all values of a side are equal.
std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const std::vector<double> x = ranks_of(a), y = ranks_of(b);
    const double mean = 0.5 * static_cast<double>(x.size() - 1);
    double xy = 0, xx = 0, yy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        xy += (x[i] - mean) * (y[i] - mean);
        xx += (x[i] - mean) * (x[i] - mean);
        yy += (y[i] - mean) * (y[i] - mean);
    }
    if (xx == 0 || yy == 0) return std::nullopt;
    return xy / std::sqrt(xx * yy);
}

/// Where times are equal except for rounding (two names of one task graph), the first counts.
constexpr double rounding = 1e-9;

RankedScenario rank(const std::string& name, const std::vector<const ComparedCase*>& cases) {
    const auto best = [&](auto time) {
        return *std::ranges::min_element(
            cases, [&](auto* a, auto* b) { return time(*a) < time(*b) * (1 - rounding); });
    };
    const ComparedCase& measured = *best([](const ComparedCase& c) { return c.measured; });
    const ComparedCase& predicted = *best([](const ComparedCase& c) { return c.predicted; });
    RankedScenario result{
        name,        cases.size(), measured.name, predicted.name, predicted.measured / measured.measured - 1,
        std::nullopt};
    if (cases.size() < 3) return result;
    result.rank_correlation = rank_correlation(mapped(cases, [](auto* one) { return one->measured.si(); }),
                                               mapped(cases, [](auto* one) { return one->predicted.si(); }));
    return result;
}

void rank_scenarios(Comparison& comparison) {
    std::map<std::string, std::vector<const ComparedCase*>> by_scenario;
    for (const ComparedCase& one : comparison.cases) by_scenario[one.key].push_back(&one);
    RankingSummary& summary = comparison.ranking;
    std::size_t hits = 0, correlated = 0;
    for (const auto& [key, cases] : by_scenario) {
        if (cases.size() < 2) continue;
        const RankedScenario ranked = rank(cases.front()->scenario, cases);
        hits += ranked.regret <= as_good_as_best;
        summary.mean_regret += ranked.regret;
        summary.rank_correlation += ranked.rank_correlation.value_or(0);
        correlated += ranked.rank_correlation.has_value();
        comparison.scenarios.push_back(ranked);
    }
    summary.scenarios = comparison.scenarios.size();
    if (summary.scenarios == 0) return;
    const auto count = static_cast<double>(summary.scenarios);
    summary.best_within_2pct = static_cast<double>(hits) / count;
    summary.mean_regret /= count;
    if (correlated > 0) summary.rank_correlation /= static_cast<double>(correlated);
}

void summarise_errors(Comparison& comparison) {
    std::map<std::string, std::vector<double>> kinds;
    std::size_t runs = 0, within = 0;
    for (const ComparedCase& one : comparison.cases) {
        if (one.spans.errors)
            for (const auto& [kind, values] : one.spans.errors->by_kind) append(kinds[kind], values);
        if (one.seeds == 1) continue;
        runs += one.runs.medians.size();
        within += static_cast<std::size_t>(std::ranges::count_if(one.runs.medians, [&](Seconds median) {
            return one.predicted_p10 <= median && median <= one.predicted_p90;
        }));
    }
    const auto summary = [](const std::string& key, const std::string& value,
                            const std::vector<const ComparedCase*>& cases) {
        GroupErrors group{key, value, summarise(mapped(cases, [](auto* one) { return one->error; }))};
        for (const ComparedCase* one : cases) {
            const std::optional<bool> inside = one->inside_p90();
            group.nine_of_ten.judged += inside.has_value();
            group.nine_of_ten.inside += inside.value_or(false);
        }
        return group;
    };
    const auto all = mapped(comparison.cases, [](const ComparedCase& one) { return &one; });
    const GroupErrors whole = summary("", "all", all);
    comparison.all = whole.errors;
    comparison.nine_of_ten = whole.nine_of_ten;
    for (const auto& [kind, values] : kinds) comparison.by_task_kind[kind] = summarise(values);
    if (runs > 0) comparison.runs_within_p10_p90 = static_cast<double>(within) / static_cast<double>(runs);
    for (const std::string& key : comparison_labels) {
        std::map<std::string, std::vector<const ComparedCase*>> values;
        for (const ComparedCase& one : comparison.cases) values[one.labels.at(key)].push_back(&one);
        for (const auto& [value, some] : values)
            if (!value.empty()) comparison.groups.push_back(summary(key, value, some));
    }
}

}  // namespace

Comparison compare(const std::vector<MeasuredCase>& cases, const ConfigFolder& folder,
                   const std::function<void()>& predicted) {
    std::vector<std::optional<ComparedCase>> compared(cases.size());
    std::vector<std::string> failures(cases.size());
    Resolver resolver(folder);
    tbb::parallel_for(std::size_t{0}, cases.size(), [&](std::size_t i) {
        try {
            compared[i] = compare_case(cases[i], resolver);
        } catch (const UserError& error) {
            failures[i] = error.what();
        }
        if (predicted) predicted();
    });
    Comparison comparison;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        if (compared[i])
            comparison.cases.push_back(std::move(*compared[i]));
        else
            comparison.not_predicted.push_back(failures[i]);
    }
    summarise(comparison);
    return comparison;
}

void summarise(Comparison& comparison) {
    summarise_errors(comparison);
    rank_scenarios(comparison);
}

}  // namespace overlap
