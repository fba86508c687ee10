#include "sim/transformer/list_advice.hpp"

#include <algorithm>

#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

bool is_choice(const OperatorStudy& row) {
    return row.best.has_value();
}

Json json_of(const Candidate& one) {
    return {{"schedule", one.schedule}, {"params", one.params()}, {"own_kernel", one.own_kernel()}};
}

Json json_of(const OperatorStudy& row, const ListAdvice& pairs) {
    Json json = json_of(*row.best);
    json["pair"] = row.name;
    json["gain_alone"] = row.gain;
    json["next_choice"] = nullptr;
    if (!row.next) return json;
    const std::optional<bool> too_close = too_close_to_call(row.margin, pairs.run.confidence);
    json["next_choice"] = json_of(*row.next);
    json["next_choice"]["margin"] = row.margin;
    json["next_choice"]["too_close_to_call"] = or_null(too_close);
    return json;
}

std::string choice_text(const OperatorStudy& row, const ListAdvice& pairs, std::size_t width) {
    const auto named = [&](const Candidate& one) {
        return one.name(pairs.vendors_library) + (one.own_kernel() ? "   own kernel" : "");
    };
    std::string text = clipped(left("  " + row.name, width) + named(*row.best)) + "\n";
    if (row.next)
        text += clipped("      next choice  " + named(*row.next) + "  +" + percent_text(row.margin) +
                        sureness(row.margin, pairs.run.confidence)) +
                "\n";
    return text;
}

}  // namespace

std::optional<ListAdvice> advise_pairs(const Workload& workload, const StudyOptions& options,
                                       const SimulatedAdvice& advice, Resolver& resolver) {
    if (workload.pair() != nullptr) return std::nullopt;
    ListStudy list = std::move(study(workload, options, resolver).lists.front());
    if (std::ranges::none_of(list.operators, is_choice)) return std::nullopt;
    RunResult of_pairs = run(*list.run, {.record = false});
    compare_with(advice.baseline.serial.candidate.name(advice.vendors_library),
                 advice.baseline.serial.makespan, of_pairs);
    return ListAdvice{std::move(list), std::move(of_pairs), advice.baseline, advice.vendors_library};
}

std::string to_text(const ListAdvice& pairs) {
    const ListStudy& list = pairs.list;
    const TimeScale scale(std::max(list.whole, list.cut));
    const auto time = [&](Seconds value) { return scale.format(value) + " " + scale.unit(); };
    const AdviceBaseline& baseline = pairs.baseline;
    std::string text = "\na schedule for each pair, chosen by the time of the whole list: " + time(list.cut) +
                       ", speed-up " + fixed(baseline.speedup(list.cut), 3) + "\n";
    std::size_t width = 0;
    for (const OperatorStudy& row : list.operators)
        if (is_choice(row)) width = std::max(width, row.name.size() + 4);
    for (const OperatorStudy& row : list.operators)
        if (is_choice(row)) text += choice_text(row, pairs, width);
    text += std::string("  all other operators ") +
            (list.concurrent ? "as their data allow" : "one after another") + "\n";
    if (list.uniform < list.whole)
        text += "  one for all pairs at best " + list.uniform_label + ", " + time(list.uniform) +
                ", speed-up " + fixed(baseline.speedup(list.uniform), 3) + "\n";
    for (const std::string& line : lines_of(pairs.run.confidence, SIZE_MAX)) text += line + "\n";
    return text;
}

Json to_json(const ListAdvice& pairs) {
    const ListStudy& list = pairs.list;
    Json json{{"makespan_us", to_microseconds(list.cut)},
              {"speedup", pairs.baseline.speedup(list.cut)},
              {"rest", list.concurrent ? "concurrent" : "serial"},
              {"one_for_all", {{"name", list.uniform_label}, {"makespan_us", to_microseconds(list.uniform)}}},
              {"choices", Json::array()},
              {"run", to_json(pairs.run)}};
    for (const OperatorStudy& row : list.operators)
        if (is_choice(row)) json["choices"].push_back(json_of(row, pairs));
    return json;
}

std::string to_csv_rows(const ListAdvice& pairs, const Remarks& remarks) {
    std::string text;
    for (const OperatorStudy& row : pairs.list.operators) {
        if (!is_choice(row)) continue;
        const Seconds best = pairs.list.cut;
        const Confidence* sure = &pairs.run.confidence;
        text += csv_row(1, {*row.best, best}, best, pairs.baseline, row.name, sure, remarks);
        if (row.next)
            text += csv_row(2, {*row.next, (1 + row.margin) * best}, best, pairs.baseline, row.name, sure,
                            remarks);
    }
    return text;
}

}  // namespace overlap
