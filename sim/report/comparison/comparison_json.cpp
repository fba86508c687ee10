#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/comparison/comparison.hpp"
#include "sim/report/run/report.hpp"

namespace overlap {
namespace {

Json errors_json(const ErrorSummary& errors) {
    return {{"count", errors.count},
            {"mean_abs", errors.mean},
            {"median_abs", errors.median},
            {"p90_abs", errors.p90},
            {"bias", errors.bias}};
}

Json group_json(const ErrorSummary& errors, const NineOfTen& nine_of_ten) {
    Json json = errors_json(errors);
    json["judged"] = nine_of_ten.judged;
    json["inside_p90"] = nine_of_ten.inside;
    return json;
}

Json tasks_json(const TaskErrors& tasks) {
    Json json{{"by_kind", Json::object()},
              {"only_measured", tasks.only_measured},
              {"only_predicted", tasks.only_predicted}};
    for (const auto& [kind, errors] : tasks.by_kind) json["by_kind"][kind] = errors_json(summarise(errors));
    if (!tasks.first) return json;
    json["first_divergence"] = {{"task", tasks.first->task},
                                {"gpu", tasks.first->gpu},
                                {"measured_start_us", to_microseconds(tasks.first->measured_start)},
                                {"measured_end_us", to_microseconds(tasks.first->measured_end)},
                                {"predicted_start_us", to_microseconds(tasks.first->predicted_start)},
                                {"predicted_end_us", to_microseconds(tasks.first->predicted_end)}};
    return json;
}

Json case_json(const ComparedCase& one) {
    Json json{{"origin", one.origin}, {"scenario", one.scenario}, {"name", one.name}};
    for (const auto& [key, value] : one.labels) json[key] = value;
    json["measured_us"] = to_microseconds(one.measured);
    json["measured_spread"] = one.runs.spread;
    json["predicted_us"] = to_microseconds(one.predicted);
    json["predicted_p10_us"] = to_microseconds(one.predicted_p10);
    json["predicted_p90_us"] = to_microseconds(one.predicted_p90);
    json["seeds"] = one.seeds;
    json["error"] = one.error;
    json["gemm_library"] = or_null(one.confidence.gemm_library());
    const Json sure = to_json(one.confidence);
    for (const char* key : {"basis", "kind", "makespan_error_pct", "p90_error_pct", "causes"})
        json[key] = sure.at(key);
    json["inside_p90"] = or_null(one.inside_p90());
    if (one.spans.errors) json["tasks"] = tasks_json(*one.spans.errors);
    return json;
}

Json scenario_json(const RankedScenario& scenario) {
    return {{"name", scenario.name},
            {"cases", scenario.cases},
            {"measured_best", scenario.measured_best},
            {"predicted_best", scenario.predicted_best},
            {"regret", scenario.regret},
            {"rank_correlation", or_null(scenario.rank_correlation)}};
}

Json verdict_json(const Verdict& verdict) {
    return {{"claim", verdict.claim},
            {"at_least", verdict.at_least},
            {"asked", verdict.asked},
            {"reached", or_null(verdict.reached)},
            {"value", verdict.value},
            {"met", verdict.met()},
            {"status", verdict.known_gap ? "known_gap" : "enforced"},
            {"standing", standing_names[static_cast<std::size_t>(verdict.standing())]},
            {"reason", verdict.reason}};
}

}  // namespace

Json to_json(const Comparison& comparison) {
    Json json{{"schema", 1},
              {"all", group_json(comparison.all, comparison.nine_of_ten)},
              {"groups", Json::array()}};
    for (const GroupErrors& group : comparison.groups) {
        Json entry{{"key", group.key}, {"value", group.value}};
        entry.update(group_json(group.errors, group.nine_of_ten));
        json["groups"].push_back(std::move(entry));
    }
    json["prices"] = prices_of(comparison);
    json["task_kinds"] = Json::object();
    for (const auto& [kind, errors] : comparison.by_task_kind) json["task_kinds"][kind] = errors_json(errors);
    const RankingSummary& ranking = comparison.ranking;
    json["ranking"] = {{"scenarios", ranking.scenarios},
                       {"best_within_2pct", ranking.best_within_2pct},
                       {"mean_regret", ranking.mean_regret},
                       {"rank_correlation", ranking.rank_correlation}};
    json["runs_within_p10_p90"] = or_null(comparison.runs_within_p10_p90);
    json["scenarios"] = mapped(comparison.scenarios, scenario_json);
    json["cases"] = mapped(comparison.cases, case_json);
    json["verdicts"] = mapped(comparison.verdicts, verdict_json);
    json["not_predicted"] = comparison.not_predicted;
    add_remarks(comparison.remarks, json);
    return json;
}

std::string to_csv(const Comparison& comparison) {
    std::string header, rows;
    for (const ComparedCase& one : comparison.cases) {
        Json row = case_json(one);
        row.erase("tasks");
        row.erase("causes");
        header = joined(keys_of(row.get_ref<Json::object_t&>()), ",") + "," + remark_columns;
        rows += joined(mapped(row, csv_cell), ",") + "," + remark_cells(comparison.remarks) + "\n";
    }
    return header + "\n" + rows;
}

}  // namespace overlap
